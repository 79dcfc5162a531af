"""What a seed makes of the world: its size, its speeds, and which faults it knows.

Every seed enables a random subset with random weights (swarm testing): a fault that is always
present hides what shows only in its absence.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

PROTOCOLS = ((2, 4), (2, 6), (2, 8), (3, 2), (3, 5))
"""Releases at which what brokers do has changed: leaders ask for ISR changes from 2.7 on, producer
ids are asked for from 3.0 on, ISR members have broker epochs from 3.5 on."""

FAULTS = (
    "crash_regent",
    "stop_regent",
    "pause_regent",
    "lose_connection",
    "cut_from_zookeeper",
    "expire_regent",
    "move_eligibility",
    "delete_controller_node",
    "crash_broker",
    "stop_broker",
    "stop_broker_in_order",
    "bounce_broker",
    "expire_broker",
    "pause_broker",
    "late_answer",
    "fail_log_dir",
    "cut_link",
    "malform",
    "malform_state",
    "malform_registration",
    "move_listener",
    "upgrade",
    "report_of_a_former_term",
    "refuse_replicas",
    "break_connection",
    "ask_for_another_broker",
)
"""Methods of :class:`~tests.simulation.faults.Faults`."""

SUSPICION = "suspect_regent"
"""Likewise, where replicas of Regent suspect each other."""

REMOVALS = (
    "remove_topic",
    "remove_states",
    "remove_registration",
    "rewrite_controller_epoch",
)
"""Methods of :class:`~tests.simulation.removals.Removals`."""

WORK = (
    "create_topic_by_command",
    "create_topic_by_hand",
    "grow_by_command",
    "grow_by_hand",
    "configure_by_command",
    "configure_by_hand",
    "change_unclean_default",
    "elect_leaders_by_command",
    "elect_preferred_leaders_by_hand",
    "delete_by_command",
    "delete_by_hand",
    "reassign_by_command",
    "reassign_by_hand",
    "cancel_by_command",
    "rewrite_request_by_hand",
    "withdraw_request_by_hand",
    "need_producer_ids",
)
"""Methods of :class:`~tests.simulation.workload.Workload`."""


@dataclass(frozen=True)
class Swarm:
    """The parameters of one world.

    Attributes:
        speeds: Weight of each kind of actor while faults happen.
        disturbance: Probability that an effect on ZooKeeper ends in a crash or a lost connection.
        lost_answers: Probability that a broker's answer is lost and its request sent again.
        repeated_answers: Probability that an answer arrives twice.
        strays: Whether a request of a closed channel may still arrive.
        unclean_default: unclean.leader.election.enable in the settings.
        balance_check_s: How often the balance of leaders is checked; None: never.
        ends_with_one_down: Whether a broker is missing when the others are looked at for the first
            time; it returns for the second.
        max_partitions: How many partitions fit into one request of Regent.
        impatience: Probability that a leader gives up a follower that merely lags.
        silence: Probability that a leader has not heard of an in-sync follower for too long.
        leaders_ask: Whether leaders at 2.7 or newer ask for ISR changes, as they do; else they
            write them, as older ones.
        hears: Whether replicas suspect those that do not answer, besides those of chance.
    """

    brokers: int = 3
    regents: int = 1
    rivals: bool = False
    protocol: tuple[int, int] = (2, 6)
    speeds: dict[str, float] = field(default_factory=dict)
    faults: dict[str, float] = field(default_factory=dict)
    work: dict[str, float] = field(default_factory=dict)
    disturbance: float = 0.0
    lost_answers: float = 0.0
    repeated_answers: float = 0.0
    strays: bool = False
    unclean_default: bool = False
    balance_check_s: int | None = None
    reuses_names: bool = False
    ends_with_one_down: bool = False
    max_partitions: int = 1_000
    announces: bool = False
    impatience: float = 0.1
    silence: float = 0.0
    leaders_ask: bool = True
    warm_standby: bool = False
    suspects: bool = False
    hears: bool = False

    @property
    def removes(self) -> bool:
        """Whether somebody removes nodes of the cluster."""
        return any(name in self.faults for name in REMOVALS)

    @classmethod
    def of(
        cls,
        rng: random.Random,
        *,
        standby: random.Random,
        suspicions: random.Random,
        removals: random.Random,
    ) -> Swarm:
        """The swarm of a seed. Later additions have chances of their own: the rest stays."""
        protocol = rng.choice(PROTOCOLS)
        faults = {name: rng.uniform(0.2, 2.0) for name in FAULTS if rng.random() < 0.4}
        work = {name: rng.uniform(0.2, 2.0) for name in WORK if rng.random() < 0.7}
        work |= {
            name: rng.uniform(0.1, 0.6) for name in work if name.startswith(("delete", "elect"))
        }
        speeds = {
            "regent": rng.uniform(6.0, 20.0),
            "watch": rng.uniform(2.0, 12.0),
            "network": rng.uniform(4.0, 20.0),
            "broker": rng.uniform(4.0, 14.0),
            "rival": rng.uniform(0.5, 6.0),
            "standby": standby.uniform(0.5, 20.0),
            "elector": rng.uniform(0.2, 2.0),
            "clock": rng.uniform(0.2, 2.0),
            "fault": rng.choice((0.0, 0.3, 1.0, 2.0)) if faults else 0.0,
            "work": rng.uniform(0.5, 4.0),
        }
        rivals = rng.random() < 0.5
        suspects = suspicions.random() < 0.3
        if suspects:
            faults[SUSPICION] = suspicions.uniform(0.5, 6.0)
            speeds["fault"] = max(speeds["fault"], suspicions.choice((0.3, 1.0)))
        brokers, regents = rng.choice((3, 3, 4)), rng.choice((1, 2, 2))
        # A broker's own controller gives a topic of a former name epochs that brokers ignore.
        if not rivals and removals.random() < 0.5:
            faults |= {
                name: removals.uniform(0.3, 4.0) for name in REMOVALS if removals.random() < 0.5
            }
            speeds["fault"] = max(speeds["fault"], removals.choice((0.3, 1.0)))
        return cls(
            brokers=brokers,
            regents=suspicions.choice((2, 2, 3)) if suspects else regents,
            rivals=rivals,
            protocol=protocol,
            speeds=speeds,
            faults=faults,
            work=work or {"create_topic_by_hand": 1.0},
            disturbance=rng.choice((0.0, 0.003, 0.01, 0.04)),
            lost_answers=rng.choice((0.0, 0.05, 0.2)),
            repeated_answers=rng.choice((0.0, 0.0, 0.1)),
            strays=rng.random() < 0.5,
            unclean_default=rng.random() < 0.15,
            balance_check_s=rng.choice((None, 2, 20)),
            # Without topic ids a broker's own controller takes what is left of a deleted topic for
            # the new one's.
            reuses_names=(protocol >= (2, 8) or not rivals) and rng.random() < 0.5,
            ends_with_one_down=rng.random() < 0.4,
            max_partitions=rng.choice((1, 2, 1_000)),
            announces=True,
            impatience=rng.choice((0.1, 0.1, 0.5)),
            silence=rng.choice((0.0, 0.05, 0.3)),
            warm_standby=standby.random() < 0.5,
            suspects=suspects,
        )


CALM_SPEEDS = {
    "regent": 10.0,
    "watch": 6.0,
    "network": 10.0,
    "broker": 8.0,
    "rival": 4.0,
    "standby": 6.0,
    "elector": 1.0,
    "hearing": 1.0,
}
"""Once faults have ended: everybody who works, and no clock (it moves when all are idle)."""
