"""The story of a partition: how it is, who is missing and why, what would help, what happened."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from regent.controller.state.causes import CauseKind, ChangeKind
from regent.status.sentences import (
    MADE_BY_LEADERS,
    brokers,
    capital,
    cause_sentence,
    change_sentences,
    left,
    moment,
    reason_of_absence,
)

Json = Mapping[str, Any]

_OF_LIVE_BROKERS: Final = (
    CauseKind.BROKER_STARTED,
    CauseKind.BROKER_BOUNCED,
    CauseKind.CONTROLLED_SHUTDOWN,
)


def tell_partition(
    found: Json, *, topic: Json, live: Sequence[int], trail: Json | None, regent: Json | None
) -> Iterator[str]:
    """Lines about one partition, those about its past indented.

    Args:
        found: What ZooKeeper says of it.
        topic: What ZooKeeper says of its topic.
        live: Registered brokers.
        trail: What the controller says of it, if that is a Regent which could be asked.
        regent: What that Regent says of the topic.
    """
    yield _headline(found, topic, live)
    if found["leader"] not in live:
        yield from _indented(_how_to_get_a_leader(found, topic, live, trail))
    if found["isr"]:
        for replica in found["replicas"]:
            if replica not in found["isr"]:
                yield f"  {_absence(replica, found, live, trail, regent)}"
    yield from _indented(_minimum(found, topic))
    yield from _indented(_reassignment(found))
    yield from _indented(_refusals(trail))
    yield from _indented(_uninformed(found, trail, regent))
    yield from _indented(_past(found, trail, regent))


def _indented(lines: Iterator[str]) -> Iterator[str]:
    return (f"  {line}" for line in lines)


def _headline(found: Json, topic: Json, live: Sequence[int]) -> str:
    name = f"{topic['name']}-{found['partition']}"
    replicas = f"replicas {found['replicas']}"
    if not found["hasState"]:
        return f"{name}: it never had a leader; {replicas}."
    if found["leaderEpoch"] is None:
        return f"{name}: its state in ZooKeeper cannot be read; {replicas}."
    state = f"leader epoch {found['leaderEpoch']}, ISR {found['isr']}, {replicas}"
    if found["leader"] is None:
        return f"{name}: offline, nobody leads; {state}."
    if found["leader"] not in live:
        return f"{name}: offline, its leader, broker {found['leader']}, is down; {state}."
    return f"{name}: broker {found['leader']} leads; {state}."


# What is wrong, and what would help


def _how_to_get_a_leader(
    found: Json, topic: Json, live: Sequence[int], trail: Json | None
) -> Iterator[str]:
    if found["isClosed"]:
        return
    if found["hasState"] and found["leaderEpoch"] is None:
        yield "Correct the znode, or delete the topic."
        return
    if topic["isMarkedForDeletion"]:
        return
    offline_dirs = [] if trail is None else trail["offlineDirs"]
    present = [b for b in found["replicas"] if b in live and b not in offline_dirs]
    if not found["hasState"]:
        if not present:
            yield f"It gets a leader when {brokers(found['replicas'], conjunction='or')} starts."
        return
    electable = [b for b in found["isr"] if b in present]
    if electable:
        is_or_are = "is" if len(electable) == 1 else "are"
        yield (
            f"{capital(brokers(electable))} {is_or_are} live and in the ISR: the next election "
            "gives it a leader."
        )
        return
    failed_dirs = [b for b in found["isr"] if b in live]
    dead = [b for b in found["isr"] if b not in live]
    if failed_dirs:
        yield (
            f"Its replica on {brokers(failed_dirs)} is on a failed log directory: it comes online "
            "when the directory is repaired and the broker restarted."
        )
    if dead:
        has = "has" if len(dead) == 1 else "have"
        yield (
            f"It comes online when {brokers(dead, conjunction='or')} returns: only "
            f"{brokers(dead)} {has} every acknowledged record."
        )
    if present:
        allows = topic["allowsUncleanElection"]
        yield (
            f"An unclean election would make {brokers(present, conjunction='or')} the leader, and "
            "what only the ISR has would be lost: unclean.leader.election.enable"
            f"{' is true, so the next election is one.' if allows else '=true on the topic.'}"
        )


def _absence(
    replica: int, found: Json, live: Sequence[int], trail: Json | None, regent: Json | None
) -> str:
    """Who is missing from the ISR, since when and why, and how the broker is now."""
    is_new = replica in found["addingReplicas"]
    what = "is being added and not in the ISR yet" if is_new else "is not in the ISR"
    since = _since(replica, trail, regent, is_new=is_new)
    return f"Broker {replica} {what}{since}. {_broker_now(replica, live, trail, regent)}"


def _since(replica: int, trail: Json | None, regent: Json | None, *, is_new: bool) -> str:
    """Since when a replica is missing, and why. A new one has never been in the ISR."""
    if trail is None or regent is None:
        return ""
    before = trail["before"]
    gone: Json | None = None
    for change in trail["changes"]:
        if replica in left(before, change["after"]):
            gone = change
        before = change["after"] or before
    if gone is not None:
        return f" since {moment(gone['cause']['timeMs'])}: {reason_of_absence(replica, gone)}"
    if is_new:
        return ""
    if trail["dropped"]:
        return " since before the changes that are kept"
    first = next(iter(trail["changes"]), None)
    if first is not None and first["kind"] == ChangeKind.FIRST_LEADER:
        return f" since the partition came into being at {moment(first['cause']['timeMs'])}"
    return f" since before {moment(regent['termBeganMs'])}, when Regent became the controller"


def _broker_now(replica: int, live: Sequence[int], trail: Json | None, regent: Json | None) -> str:
    if trail is not None and replica in trail["offlineDirs"] and replica in live:
        return "It is live, and its replica is on a failed log directory."
    last = None if regent is None else regent["brokers"].get(str(replica), {}).get("last")
    kinds = _OF_LIVE_BROKERS if replica in live else (CauseKind.BROKER_FAILED,)
    when = "" if last is None or last["kind"] not in kinds else f" since {moment(last['timeMs'])}"
    if replica not in live:
        return f"It is down{when}."
    if regent is not None and regent["brokers"].get(str(replica), {}).get("isShuttingDown"):
        return f"It is stopping{when}."
    return f"It is live{when}, and has not caught up."


def _minimum(found: Json, topic: Json) -> Iterator[str]:
    minimum = topic["minInsyncReplicas"]
    if minimum is not None and found["leader"] is not None and len(found["isr"]) < minimum:
        yield (
            f"The ISR has {len(found['isr'])} of the {minimum} replicas of min.insync.replicas: "
            "producers with acks=all are refused."
        )


def _reassignment(found: Json) -> Iterator[str]:
    parts = [
        f"{what} {brokers(found[key])}"
        for key, what in (("addingReplicas", "adds"), ("removingReplicas", "removes"))
        if found[key]
    ]
    if parts:
        yield f"A reassignment is in progress: it {' and '.join(parts)}."


def _refusals(trail: Json | None) -> Iterator[str]:
    for broker_id, error in () if trail is None else trail["refusals"]:
        yield f"Broker {broker_id} refuses what Regent requests for it: {error}."


def _uninformed(found: Json, trail: Json | None, regent: Json | None) -> Iterator[str]:
    for broker_id in () if trail is None else trail.get("uninformed") or ():
        what = "lead" if broker_id == found["leader"] else "follow"
        known = {} if regent is None else regent["brokers"].get(str(broker_id), {})
        why = f" at {known['problem']}" if known.get("problem") else ""
        yield (
            f"Broker {broker_id} has not been informed that it is to {what} it, as Regent does not "
            f"reach it{why}. Until then it does what it knew before, if anything."
        )


# What happened


def _past(found: Json, trail: Json | None, regent: Json | None) -> Iterator[str]:
    if trail is None or regent is None:
        yield from _from_zookeeper(found)
        return
    began = f"controller epoch {regent['controllerEpoch']} began at {moment(regent['termBeganMs'])}"
    if not trail["changes"]:
        if regent["evictedPartitions"]:
            yield f"No change is kept of it; older ones may have been given up ({began})."
        else:
            yield f"It has not changed since {began}."
        yield from _from_zookeeper(found)
        return
    yield f"Since {began}:"
    if trail["dropped"]:
        yield f"  {trail['dropped']} older changes are no longer kept."
    if trail["before"] is not None:
        yield f"  {_before(trail['before'])}"
    before, named = trail["before"], None
    for change in trail["changes"]:
        concerned = {*found["replicas"], *(before["isr"] if before else ())}
        sentences = [change_sentences(before, change)]
        if change["kind"] not in MADE_BY_LEADERS and change["cause"] != named:
            named = change["cause"]
            sentences.insert(0, cause_sentence(named, concerned))
        yield f"  {moment(change['cause']['timeMs'])}  {' '.join(sentences)}"
        before = change["after"] or before
    now = trail["changes"][-1]["after"]
    if now is not None and (found["partitionEpoch"] or 0) > now["partitionEpoch"]:
        yield "  ZooKeeper has a later change, which Regent has yet to process."


def _before(before: Json) -> str:
    leader = before["leader"]
    who = "nobody led" if leader is None else f"broker {leader} led"
    return (
        f"Before: {who}; leader epoch {before['leaderEpoch']}, ISR {list(before['isr'])}, as of "
        f"controller epoch {before['controllerEpoch']}."
    )


def _from_zookeeper(found: Json) -> Iterator[str]:
    """What is known of the time before, or without a Regent."""
    if found["leaderEpoch"] is not None:
        yield (
            f"ZooKeeper: last changed at {moment(found['changedMs'])} (the last controller to "
            f"change it had epoch {found['controllerEpoch']}), created at "
            f"{moment(found['createdMs'])}."
        )


def tell_topic(topic: Json, *, live: Sequence[int]) -> Iterator[str]:
    """About a topic as a whole: one line, and one about its deletion."""
    if topic["partitionCount"] is None:
        yield f"Topic {topic['name']}: which partitions it has cannot be read."
        return
    state = f"{topic['partitionCount']} partitions"
    if topic["partitionCount"] == 1:
        state = "1 partition"
    problems = [
        f"{topic[key]} {what}"
        for key, what in (
            ("offline", "offline"),
            ("underReplicated", "under-replicated"),
            ("unknown", "of unknown state"),
        )
        if topic[key]
    ]
    yield f"Topic {topic['name']}: {state}, {', '.join(problems) or 'all in sync'}."
    if topic["isMarkedForDeletion"]:
        hosts = {replica for p in topic["partitions"] for replica in p["replicas"]}
        dead = sorted(hosts.difference(live))
        waits = f", which waits for {brokers(dead)} to return" if dead else ""
        yield f"The topic is marked for deletion{waits}."
