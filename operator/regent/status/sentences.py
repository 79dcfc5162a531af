"""Sentences about changes of leadership: short, the subject first.

One for each :class:`~regent.controller.state.causes.CauseKind` and each
:class:`~regent.controller.state.causes.ChangeKind`.
"""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from regent.controller.state.causes import CauseKind, ChangeKind

Json = Mapping[str, Any]

_BY_ITSELF: Final = "it stopped fetching, or fell behind"

MADE_BY_LEADERS: Final = (ChangeKind.OBSERVED, ChangeKind.ISR_REQUESTED)
"""Changes that the leader decides, and writes or asks the controller for: no event of the
controller's is their cause."""


def moment(time_ms: int) -> str:
    """As in Regent's log."""
    utc = datetime.datetime.fromtimestamp(time_ms / 1000, tz=datetime.UTC)
    return utc.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def brokers(ids: Iterable[int], *, conjunction: str = "and") -> str:
    """``broker 1``, ``brokers 1 and 2``, ``broker 1, 2 or 3``."""
    names = list(map(str, ids))
    if len(names) == 1:
        return f"broker {names[0]}"
    noun = "brokers" if conjunction == "and" else "broker"
    return f"{noun} {', '.join(names[:-1])} {conjunction} {names[-1]}"


def capital(sentence: str) -> str:
    """With a capital letter at the beginning."""
    return sentence[:1].upper() + sentence[1:]


# Causes


def cause_sentence(cause: Json, concerned: Collection[int]) -> str:
    """Why something changed.

    Args:
        concerned: The partition's brokers. Of several that the cause is about, those are named.
    """
    named = [b for b in cause["brokers"] if b["id"] in concerned] or cause["brokers"]
    who = capital(brokers(b["id"] for b in named)) if named else "A broker"
    was = "was" if len(named) == 1 else "were"
    match cause["kind"]:
        case CauseKind.BROKER_FAILED:
            sessions = [b["sessionId"] for b in named if b["sessionId"]]
            ended = f": ZooKeeper session {', '.join(sessions)} ended" if sessions else ""
            return f"{who} failed{ended}."
        case CauseKind.BROKER_STARTED:
            epochs = ", ".join(str(b["epoch"]) for b in named)
            return f"{who} started (broker epoch {epochs})."
        case CauseKind.BROKER_BOUNCED:
            epochs = ", ".join(str(b["epoch"]) for b in named)
            return f"{who} {was} restarted (new broker epoch {epochs})."
        case CauseKind.CONTROLLED_SHUTDOWN:
            are = "is" if len(named) == 1 else "are"
            return f"{who} {are} stopping (controlled shutdown)."
        case CauseKind.SHUTDOWN_GIVEN_UP:
            return f"{who} asked to be shut down, and did not stop."
        case CauseKind.LOG_DIR_FAILED:
            return f"{who} lost a log directory with this partition."
        case CauseKind.REQUEST_REFUSED:
            return f"{who} had refused a request about this partition, which was sent again."
        case CauseKind.LEADER_OF_FORMER_TOPIC:
            has = "has a replica" if len(named) == 1 else "have replicas"
            return f"{who} {has} of another topic of that name."
        case kind:
            return _SENTENCES.get(kind) or f"Regent processed the event {cause['event']}."


_SENTENCES: Final[Mapping[str, str]] = {
    CauseKind.CONTROLLER_FAILOVER: "Regent became the controller.",
    CauseKind.ISR_CHANGE: "A leader announced a change of an ISR.",
    CauseKind.STATE_UNREPORTED: "Regent had another state, by a defect, and read it again.",
    CauseKind.TOPIC_CREATED: "The topic was created.",
    CauseKind.PARTITIONS_ADDED: "The partition was added to the topic.",
    CauseKind.TOPIC_DELETION: "The topic is being deleted.",
    CauseKind.TOPIC_VANISHED: "The topic's node was removed by somebody else.",
    CauseKind.ELECTION_REQUESTED: "An election of leaders was requested.",
    CauseKind.LEADER_IMBALANCE: "Too many partitions were not led by their preferred leaders.",
    CauseKind.REASSIGNMENT: "The partition is being reassigned.",
    CauseKind.ELECTION_REPEATED: "An election that had failed was tried again.",
    CauseKind.UNCLEAN_ELECTION_ENABLED: "unclean.leader.election.enable was set to true.",
}


def removed_sentence(topic: str, cause: Json) -> str:
    """Why a topic is gone."""
    when = moment(cause["timeMs"])
    if cause["kind"] == CauseKind.TOPIC_DELETION:
        return f"Topic {topic!r} was deleted; its last replica was gone at {when}."
    return f"Topic {topic!r} was removed from ZooKeeper by somebody else, observed at {when}."


# Changes


def change_sentences(before: Json | None, change: Json) -> str:
    """How leadership changed, and to what."""
    after = change["after"]
    if after is None:
        return "Its state in ZooKeeper cannot be read any more, so its leader is not known."
    sentence = _how(change["kind"], before, after, found_with=change["cause"])
    return f"{sentence} Leader epoch {after['leaderEpoch']}, ISR {list(after['isr'])}."


def _how(kind: str, before: Json | None, after: Json, *, found_with: Json) -> str:
    leader = after["leader"]
    match kind:
        case ChangeKind.FIRST_LEADER:
            return f"Broker {leader} became its first leader."
        case ChangeKind.ELECTED_OFFLINE:
            return f"Broker {leader} was elected leader from the ISR."
        case ChangeKind.ELECTED_UNCLEAN:
            isr = [] if before is None else list(before["isr"])
            return (
                f"Broker {leader} was elected leader from outside the ISR {isr} (unclean "
                "election): acknowledged records may be lost."
            )
        case ChangeKind.ELECTED_PREFERRED:
            return f"Broker {leader}, the preferred leader, was elected leader."
        case ChangeKind.ELECTED_REASSIGN:
            return f"Broker {leader} was elected leader from the target replicas."
        case ChangeKind.ELECTED_CONTROLLED_SHUTDOWN:
            return f"Broker {leader} was elected leader, since the leader before is stopping."
        case ChangeKind.REPLICA_OFFLINE:
            return _replica_offline(before, after)
        case ChangeKind.OBSERVED:
            return _observed(before, after, is_announced=found_with["kind"] == CauseKind.ISR_CHANGE)
        case ChangeKind.ISR_REQUESTED:
            return _observed(before, after, is_announced=True)
        case _:
            return _written(before, after)


def _leads(leader: int | None) -> str:
    return "nobody leads" if leader is None else f"broker {leader} leads"


def _written(before: Json | None, after: Json) -> str:
    gone = left(before, after)
    what = f"took {brokers(gone)} out of the ISR" if gone else "raised the leader epoch"
    return f"Regent {what}; {_leads(after['leader'])}."


def _replica_offline(before: Json | None, after: Json) -> str:
    sentences = []
    gone = left(before, after)
    if gone:
        was = "was" if len(gone) == 1 else "were"
        sentences.append(f"{capital(brokers(gone))} {was} taken out of the ISR.")
    elif before is not None and after["leader"] is None and after["isr"]:
        member = "member" if len(after["isr"]) == 1 else "members"
        sentences.append(f"The ISR keeps its last {member}, {brokers(after['isr'])}.")
    if before is not None and before["leader"] is not None and after["leader"] is None:
        sentences.append("The partition lost its leader.")
    return " ".join(sentences) or "Its state was written again."


def _observed(before: Json | None, after: Json, *, is_announced: bool) -> str:
    """What Regent did not write, or does not know to have written."""
    if before is None:
        return f"Its state was found in ZooKeeper: {_leads(after['leader'])}."
    if after["leaderEpoch"] != before["leaderEpoch"]:
        return (
            f"A change of controller epoch {after['controllerEpoch']} was found in ZooKeeper: "
            f"{_leads(after['leader'])}."
        )
    who = f"The leader, broker {after['leader']}, "
    if not is_announced:
        who = f"By then the leader, broker {after['leader']}, had "
    gone, come = left(before, after), left(after, before)
    parts = [f"taken {brokers(gone)} out of the ISR"] if gone else []
    parts += [f"taken {brokers(come)} into the ISR"] if come else []
    if not parts:
        return "By then its state had been written again, with the same leader and ISR."
    what = " and ".join(parts)
    if is_announced:
        what = what.replace("taken ", "took ")
    reason = f": {_BY_ITSELF if len(gone) == 1 else _BY_ITSELF.replace('it', 'they', 1)}"
    return f"{who}{what}{reason if gone else ''}."


def left(before: Json | None, after: Json | None) -> list[int]:
    """Who is in the ISR before and not after."""
    if before is None or after is None:
        return []
    return [b for b in before["isr"] if b not in after["isr"]]


# Replicas that are missing from the ISR


def reason_of_absence(replica: int, change: Json) -> str:
    """Why a change took a replica out of the ISR, as a clause."""
    if change["kind"] in MADE_BY_LEADERS:
        return f"the leader took it out, because {_BY_ITSELF}"
    if change["kind"] == ChangeKind.ELECTED_UNCLEAN:
        return "an unclean election left it out"
    if change["kind"] == ChangeKind.ELECTED_CONTROLLED_SHUTDOWN:
        return "it was stopping"
    cause = change["cause"]
    if replica not in [b["id"] for b in cause["brokers"]]:
        return _ABSENCES.get(cause["kind"], "it was offline")
    return _ABSENCES_OF_BROKERS.get(cause["kind"], "it was offline")


_ABSENCES_OF_BROKERS: Final[Mapping[str, str]] = {
    CauseKind.BROKER_FAILED: "it failed",
    CauseKind.BROKER_BOUNCED: "it was restarted",
    CauseKind.CONTROLLED_SHUTDOWN: "it was stopping",
    CauseKind.LOG_DIR_FAILED: "it lost the log directory",
    CauseKind.LEADER_OF_FORMER_TOPIC: "it has a replica of another topic of that name",
}
_ABSENCES: Final[Mapping[str, str]] = {
    CauseKind.CONTROLLER_FAILOVER: "it was offline when Regent became the controller",
    CauseKind.TOPIC_DELETION: "the topic is being deleted",
}
