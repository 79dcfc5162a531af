"""The cluster as a client of its controller knows it, and what it does with that.

The state is that of an active controller, with the term of the broker that is it: so commands on
topics, placements and throttles are the controller's own code. There are no state machines, and
nothing is sent to brokers but what an administrator may ask.
"""

from __future__ import annotations

import contextlib
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any

from regent.admin.commands import Outcome, Reason, Rejected
from regent.admin.topic_admin import Chance
from regent.cluster.known_broker_facts import KnownBrokerFacts
from regent.controller.active_controller import ActiveController
from regent.controller.commands import Command
from regent.controller.config import ControllerConfig
from regent.controller.effects import (
    InterBrokerProtocol,
    PublishView,
    Resigned,
    Respond,
    UpdateChannels,
)
from regent.controller.reassignment import throttles
from regent.controller.state.cluster_state import ClusterState
from regent.controller.state.context import ControllerContext
from regent.controller.state.term import Term
from regent.controller.state.throttles import Throttles
from regent.controller.term.cluster_identity import ClusterFound, refuse_other_cluster
from regent.controller.transitions.partition_state_znodes import epoch_guard
from regent.model.active_regent import ActiveRegent
from regent.model.cluster import Broker
from regent.model.errors import (
    ClusterChangedError,
    ControllerMovedError,
    UnexpectedZooKeeperError,
)
from regent.model.log import StructuredLog
from regent.model.topic_config import BrokerFacts
from regent.steering.commands import carry_out
from regent.steering.expected_moves import ExpectedMoves
from regent.steering.foreign_controller import ForeignController, read_controller
from regent.zk_data import paths
from regent.zk_data.effects import Effect, ReadChildren, Write


class Steering:
    """What is known of a cluster that a broker controls. Its coroutines await effects only.

    Attributes:
        active: Its context; None as long as nothing is known.
        controller_id_seen: Who is the controller, -1 if nobody is.
        regent_seen: What that one says of itself if it is a Regent.
        refusal: Why nothing is known, or can be asked, though ZooKeeper answers; None: it can.
        is_serving: Whether resources are served here: others leave throttles alone.
    """

    def __init__(self, config: ControllerConfig, *, log: StructuredLog, chance: Chance) -> None:
        self.active: ActiveController | None = None
        self.controller_id_seen = -1
        self.regent_seen: ActiveRegent | None = None
        self.refusal: str | None = None
        self.is_serving = False
        self._config = config
        self._log = log
        self._chance = chance
        self._facts: dict[int, tuple[int, BrokerFacts]] = {}
        self._connected_to: Mapping[int, Broker] = {}
        self._expected = ExpectedMoves()
        self._cluster_id: str | None = None

    # What is known

    async def catch_up(self) -> None:
        """Have the server that we are connected to know what was written by now, and report it.

        One that lags behind, or was cut off from its leader, answers what it is asked as if nothing
        had been written since. It answers a transaction, also one that it refuses, once it has
        applied all before.
        """
        if self.active is not None:
            guard = epoch_guard(self.active.context)
            with contextlib.suppress(ControllerMovedError, UnexpectedZooKeeperError):
                await Write([guard], guard=guard)

    async def look(self, cluster: ClusterState) -> None:
        """Find out who is the controller and what is to be deleted. Leaves watches on that.

        Args:
            cluster: What was read of the rest; whoever reads it goes on changing it.
        """
        found = self._refuses(cluster) or await read_controller()
        if isinstance(found, str):
            await self.forget(found)
            return
        self.refusal, self._cluster_id = None, cluster.cluster_id
        self.controller_id_seen, self.regent_seen = found.controller_id, found.regent
        active = self.active
        is_new = active is None or active.context.cluster is not cluster
        if active is None or active.context.cluster is not cluster:
            active = self.active = self._begin(cluster)
        active.context.term = _term_of(found)
        (marked,) = await ReadChildren([paths.DELETE_TOPICS], watch=True)
        _mark(active.context, marked or ())
        if is_new:
            await throttles.load(active)
        await self.follow(is_new=is_new)

    async def follow(self, *, is_new: bool = False) -> None:
        """Take in what was read of the cluster since, and publish it.

        Args:
            is_new: Whether everything is new.
        """
        active = self.active
        if active is None:
            return
        refusal = self._refuses(active.context.cluster)
        if refusal is not None:
            await self.forget(refusal)
            return
        await self._follow_brokers(active.context)
        await PublishView(None if is_new else frozenset())
        await self._release(active)

    def _refuses(self, cluster: ClusterState) -> str | None:
        """Why nothing is done in a cluster: it is not the one that this process has known so far.
        What was declared for that one must not come about here. None: it is."""
        found = ClusterFound(True, cluster.cluster_id)
        try:
            refuse_other_cluster(self._cluster_id, found, may_create=True)
        except ClusterChangedError as error:
            return str(error)
        return None

    def learn(self, broker_epoch: int, facts: BrokerFacts) -> None:
        """A broker has said what it runs: what waited for that may succeed now."""
        self._facts[facts.broker_id] = (broker_epoch, facts)
        if self.active is not None:
            self.active.context.broker_facts.learn(broker_epoch, facts)

    async def forget(self, refusal: str | None) -> None:
        """Nothing is known any more.

        Args:
            refusal: Why, if it is not for ZooKeeper that does not answer.
        """
        was_active = self.active is not None
        self.active, self.refusal = None, refusal
        self.controller_id_seen = -1
        if refusal is not None:
            self.regent_seen = None  # else it is what was last known
        self._connected_to, self._facts = {}, {}
        self._expected = ExpectedMoves()
        if was_active:
            await Resigned()

    def _begin(self, cluster: ClusterState) -> ActiveController:
        context = ControllerContext(Term(-1, 0, 0), cluster)
        cluster.recorder = None  # whoever changes leadership knows why; we do not
        context.broker_facts = KnownBrokerFacts(
            cluster, has_replicas=lambda broker_id: _has_replicas(cluster, broker_id)
        )
        for epoch, facts in self._facts.values():
            context.broker_facts.learn(epoch, facts)
        return ActiveController(context, config=self._config, log=self._log, chance=self._chance)

    async def _follow_brokers(self, context: ControllerContext) -> None:
        """Have connections to the brokers, to learn what they run. Nothing is sent on them."""
        brokers, known = context.cluster.brokers, self._connected_to
        if brokers is known:
            return
        self._connected_to = brokers
        context.broker_facts.brokers_changed()
        opened = [broker for b, broker in brokers.items() if known.get(b) != broker]
        closed = [b for b in known if b not in brokers]
        await UpdateChannels(
            controller_epoch=context.term.epoch,
            epoch_zk_version=None,
            opened=opened,
            closed=closed,
        )
        context.cluster.inter_broker_protocol = await InterBrokerProtocol()

    # What is done

    async def process(self, commands: Sequence[Command], reply_to: object) -> None:
        """Carry out commands that arrived together, and answer them."""
        await Respond(reply_to, await self._outcomes(commands))

    async def _outcomes(self, commands: Sequence[Command]) -> tuple[Outcome, ...]:
        active = self.active
        if active is None:
            return refused(commands, self.refusal)
        try:
            return await carry_out(active, commands, self._expected, lambda: self.regent_seen)
        except ControllerMovedError:
            return refused(commands, "another controller was elected at this moment")

    async def serve(self, *, is_serving: bool) -> None:
        """Resources are, or are no longer, served here. Whoever served them before has left notes
        of what is throttled."""
        self.is_serving = is_serving
        if is_serving and self.active is not None:
            self.active.context.throttles = Throttles()
            await throttles.load(self.active)
            await self._release(self.active)

    async def settle(self) -> None:
        """Bring all throttles to what they should be: now and then, for what no event reports."""
        self._expected.forget_accepted()
        if self.active is None or not self.is_serving:
            return
        if self._expected.is_asked:  # what moves then is not known: the next time
            await self._release(self.active)
        else:
            await self._fenced(throttles.settle(self.active))

    async def _release(self, active: ActiveController) -> None:
        """Remove the throttles of partitions that do not move any more."""
        known = active.context.throttles.topics
        if not (self.is_serving and known):
            return
        awaited = self._expected.awaited(active.context.cluster)
        over = [topic for topic in known if topic not in awaited]
        await self._fenced(throttles.release(active, over))

    async def _fenced(self, writing: Coroutine[Effect[Any], Any, None]) -> None:
        """Write under the controller that is known. If another one was elected meanwhile, the
        watches that :meth:`look` leaves lead to another look, and that to the same writing."""
        try:
            await writing
        except ControllerMovedError:
            self._log.info("Another controller was elected, throttles are looked at again")


def refused(commands: Sequence[Command], why: str | None) -> tuple[Outcome, ...]:
    """The answer while the cluster is not known."""
    message = f"{why or 'the cluster is not known yet'}; the command is tried again"
    return tuple(Rejected(Reason.NOT_CONTROLLER, message) for _ in commands)


def _term_of(found: ForeignController) -> Term:
    return Term(found.controller_id, found.epoch, found.epoch_zk_version)


def _mark(context: ControllerContext, marked: Sequence[str]) -> None:
    """Take in which topics are to be deleted, and which are not any more."""
    before, after = context.topics_to_be_deleted, dict.fromkeys(marked)
    for topic in (*before, *after):
        if (topic in before) is not (topic in after):
            context.cluster.note_change(topic)
    context.topics_to_be_deleted = after


def _has_replicas(cluster: ClusterState, broker_id: int) -> bool:
    return any(
        broker_id in assignment.replicas
        for topic in cluster.topics
        for assignment in cluster.partitions_of(topic).values()
    )
