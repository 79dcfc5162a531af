"""There is one controller at a time: who raises the epoch, and who passes the fence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from regent.zk_data import paths
from regent.zk_data.controller import decode_controller_epoch
from regent.zk_data.operations import Create, Delete, Operation, SetData
from tests.simulation.checkers.observed import Observed
from tests.simulation.trace import require

if TYPE_CHECKING:
    from tests.simulation.world import World


class TermChecker:
    """Follows who is the controller."""

    def __init__(self, world: World, seen: Observed) -> None:
        self._world = world
        self._seen = seen
        self._holder_session_id = 0

    def epoch_raised(self, writer: str, writes: Sequence[Operation], session_id: int) -> None:
        """A transaction changes the controller epoch."""
        if writer == "admin":
            self._rewritten(writes)
            return
        (raised,) = (op for op in writes if op.path == paths.CONTROLLER_EPOCH)
        assert isinstance(raised, Create | SetData)
        epoch = decode_controller_epoch(raised.data)
        if isinstance(raised, Create):
            require(epoch == 0, f"{writer} creates the controller epoch as {epoch}")
            return
        require(
            epoch == self._seen.epoch + 1
            or (self._seen.is_epoch_rewritten and epoch > self._seen.epoch),
            f"{writer}: controller epoch {self._seen.epoch} -> {epoch}",
        )
        taken = any(isinstance(op, Create) and op.path == paths.CONTROLLER for op in writes)
        require(taken, f"{writer} raises the controller epoch without becoming the controller")
        self._seen.epoch = epoch
        self._check_right(writer, writes, session_id)
        self._holder_session_id = session_id
        self._world.trace.line(writer, "wins", f"epoch={epoch}")

    def _rewritten(self, writes: Sequence[Operation]) -> None:
        """Somebody else has written the node: nobody passes the fence before the next election."""
        for operation in writes:
            if isinstance(operation, Create | SetData):
                self._seen.epoch = decode_controller_epoch(operation.data)
                self._seen.is_epoch_rewritten = True

    def _check_right(self, writer: str, writes: Sequence[Operation], session_id: int) -> None:
        """A replica that is not elected deposes replicas only, and is the next from then on."""
        process = self._world.regent_of(session_id)
        if process is None or process.controller.life.is_eligible:
            return
        require(
            any(isinstance(op, Delete) and op.path == paths.CONTROLLER for op in writes),
            f"{writer} becomes the controller without being elected, and deposes nobody",
        )
        deposed = self._world.owner_of(self._holder_session_id)
        require(deposed.startswith("regent"), f"{writer} deposes {deposed} without being elected")
        require(
            self._world.elector.first_in_the_queue() == session_id,
            f"{writer} becomes the controller though another replica is next",
        )

    def fenced_write(self, writer: str, session_id: int) -> None:
        """Only the controller of the present epoch may have passed the fence."""
        if not writer.startswith("regent"):
            # A controller in another thread is no rival: what it takes for its epoch is not known.
            for rival in self._world.rivals:
                if writer == rival.broker_name:
                    require(
                        rival.epoch == self._seen.epoch,
                        f"{writer} writes under epoch {rival.epoch}",
                    )
            return
        if self._seen.is_epoch_rewritten:
            return  # the version of a node that was deleted and created again begins at 0
        process = self._world.regent_of(session_id)
        require(process is not None, f"{writer} writes after its death")
        assert process is not None
        active = process.controller.active
        # A controller that hands over has resigned already when it deletes its node.
        epoch = self._seen.epoch if active is None else active.context.term.epoch
        require(
            epoch == self._seen.epoch,
            f"{writer} writes under epoch {epoch}, the present one is {self._seen.epoch}",
        )
