"""Partitions move while they are written to."""

from __future__ import annotations

from regent.model.partition import TopicPartition
from regent.protocol.error_codes import NO_REASSIGNMENT_IN_PROGRESS, NONE
from tests.matrix.flow import Flow, Stage
from tests.support.commands import reassign as reassign_by_command
from tests.support.commands import reassignments
from tests.support.reassigning import (
    request_reassignment,
    under_way,
    wait_for_hosts,
    wait_until_moved,
)


def _reassign(stage: Stage) -> None:
    """Every kind of move, each to its end."""
    pair, single = (stage.topic, 0), (stage.topic, 1)
    with stage.regent():
        for targets in (
            {pair: [1, 2, 3], single: [1, 2]},  # grow
            {pair: [1, 3], single: [2]},  # shrink
            {pair: [2, 3], single: [3]},  # one replica, and the whole partition
            {pair: [3, 2]},  # only the order
            {pair: [1, 2], single: [1]},
        ):
            request_reassignment(stage.cluster, targets)
            wait_until_moved(stage.cluster, targets)
            wait_for_hosts(stage.cluster, targets)
            stage.producer.wait_for_progress()


def _cancel(stage: Stage) -> None:
    """Moves to a broker that is down are cancelled: by another request, and by a command."""
    cluster, moved = stage.cluster, (stage.topic, 0)
    origin = {moved: [1, 2]}
    tp = TopicPartition(*moved)
    cluster.kill_broker(3)
    with stage.regent():
        request_reassignment(cluster, {moved: [3, 1]})
        cluster.wait(lambda: under_way(cluster, stage.topic), "the move to begin")
        stage.producer.wait_for_progress()
        request_reassignment(cluster, origin)
        wait_until_moved(cluster, origin)
        cluster.broker(3).start()
    with stage.controller() as controller:
        cluster.broker(3).pause()  # alive, as the command demands, and copies nothing
        assert reassign_by_command(controller, {tp: (2, 3)})[tp].error_code == NONE
        assert tp in reassignments(controller)
        assert under_way(cluster, stage.topic)
        stage.producer.wait_for_progress()
        assert reassign_by_command(controller, {tp: None})[tp].error_code == NONE
        assert reassignments(controller) == {}
        again = reassign_by_command(controller, {tp: None})[tp]
        assert again.error_code == NO_REASSIGNMENT_IN_PROGRESS
        assert not under_way(cluster, stage.topic)
        cluster.broker(3).resume()
        wait_for_hosts(cluster, origin)
    assert sorted((cluster.znodes.assignment(stage.topic) or {})[0]) == [1, 2]


REASSIGN = Flow(name="reassign", run=_reassign, assignment={0: [1, 2], 1: [1]})
CANCEL = Flow(name="cancel", run=_cancel, assignment={0: [1, 2]})
