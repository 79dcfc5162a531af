"""Watches can be lost without a word: what they are to report is looked up regularly.

ZooKeeper (3.8.4, 3.9.2 and newer, CVE-2024-23944) reports a change only to who may read the node at
that moment. A watch that fires while a node is closed to us is used up all the same. Without a look
of our own, a controller whose rights were taken away for a moment would never again learn of topics
that come and of brokers that go, and nothing would show it.

So each event that a watch of a path that every controller needs stands for is repeated: its handler
reads the present state, sets the watch again, and finds nothing to do where nothing was missed. Who
may not read such a path finds that out, too, and gives the controller up.

A path may be gone itself: ``rmr /admin/delete_topics`` is advice that people find. Then no topic
could be deleted, and Kafka's tools, which create it again, would not be noticed. So it is created
again.

Somebody may have written ``/controller_epoch`` while ``/controller`` stayed. Then no write of ours
passes the fence, and after a pause nothing is sent either, while everybody takes us for the
controller. The next write would show that, whenever that is. So the fence is looked up, too.

Changes of single nodes (a topic that grows while it is closed to us) are not looked up, unless
somebody tried to read them in vain: there may be 100,000 of them. Upstream looks nothing up.
"""

from __future__ import annotations

from typing import Final

from regent.controller.active_controller import ActiveController
from regent.controller.effects import ArmTimer, Enqueue, PublishView
from regent.controller.elections import leaders_of_former_topics
from regent.controller.events import WatchCheck
from regent.controller.partitions import isr_changes, waiting_leaders
from regent.controller.reassignment import reassignments, throttles
from regent.controller.state.causes import CauseKind
from regent.controller.term.persistent_paths import restore_persistent_paths
from regent.controller.term.watches import NEEDED
from regent.controller.topics import topic_changes
from regent.controller.transitions.partition_state_znodes import epoch_guard
from regent.zk_data.effects import Write
from regent.zk_data.permitted_reads import parts_that_may_be_closed

_TIMER: Final = "watch check"


async def schedule_watch_check(active: ActiveController) -> None:
    """Arm the timer of the next check, if there are to be any. A resignation ends it."""
    interval_s = active.config.watch_check_interval_s
    if interval_s is not None:
        await ArmTimer(_TIMER, interval_s * 1_000, WatchCheck())


async def _repeat_elections(active: ActiveController) -> None:
    """Try those again that failed for what no watch reports the end of: a right, a quota, or what
    was in a znode."""
    topics = frozenset(tp.topic for tp in active.context.elections_to_repeat)
    if topics:
        with active.context.trail.because(CauseKind.ELECTION_REPEATED):
            await active.partitions.trigger_online_for(())
        await PublishView(topics)


async def _read_unreadable_topics(active: ActiveController) -> None:
    """Read the nodes of known topics again that could not be read: no watch was left on them.
    However many that are by now, each reading finds no more of them closed than it may."""
    cluster = active.context.cluster
    topics = [topic for topic in cluster.unreadable_topics if cluster.has_topic(topic)]
    for some in parts_that_may_be_closed(topics):
        await topic_changes.process_partition_modifications(active, some)


async def process_watch_check(active: ActiveController) -> None:
    """Have everything looked at that watches are to report. What is watched may have been deleted,
    and a watch needs a node. What was refused, or overwritten, is tried again."""
    guard = epoch_guard(active.context)
    await Write([guard], guard=guard)
    await restore_persistent_paths(active)
    await _read_unreadable_topics(active)
    await _repeat_elections(active)
    await isr_changes.read_again(active)
    await waiting_leaders.repeat(active)
    await leaders_of_former_topics.repeat(active)
    await reassignments.look_again(active)
    await throttles.settle(active)
    await active.deletions.resume(())
    for event in NEEDED:
        await Enqueue(event)
    await schedule_watch_check(active)
