"""Commands of many resources travel to the controller together.

The controller works in sets: creating a thousand topics in one submission costs a few round trips
to ZooKeeper, creating them one by one costs thousands. So while one submission is under way, and
for a while after it, all commands that come in are collected for the next one.

The while is a multiple of what the submission took: much of that is the same for one topic and for
a hundred, such as ZooKeeper's list of all topics and a request to each broker.

Moves of replicas and elections are collected by themselves. In client mode another process is asked
for them, and may take long; whatever does not depend on that goes on.

Commands may wait as long as a submission does, half a minute with a slow ZooKeeper. Somebody may
have changed the resource by then, or another one: a topic that was to be deleted is to stay. So it
is asked whether commands are still wanted when their batch leaves.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from regent.admin.commands import (
    Accepted,
    AlterPartitionReassignments,
    DescribeTopicConfigs,
    ElectLeaders,
    Outcome,
    Reason,
    ReassignTopic,
    Rejected,
    ResourceCommand,
)
from regent.kube.waiting import cancel
from regent.model.errors import RegentError
from regent.runtime.ports import ControllerPort

logger = logging.getLogger(__name__)

BATCH_WAIT_S: Final = 0.005
"""How long the first command waits for company."""

REST_PER_COST: Final = 4.0
REST_MAX_S: Final = 0.25
"""However long a submission took."""

BATCH_SIZE_MAX: Final = 2000
"""Commands in one submission."""


class CommandsOutdatedError(RegentError):
    """Commands are not wanted any more by whoever asked for them. Nothing was sent."""


@dataclass(frozen=True, slots=True)
class _Pending:
    commands: tuple[ResourceCommand, ...]
    outcomes: asyncio.Future[tuple[Outcome, ...]]
    is_wanted: Callable[[], bool]


class _Lane:
    """What waits for the next submission of its kind."""

    def __init__(self) -> None:
        self._pending: list[_Pending] = []
        self._available = asyncio.Event()

    def put(self, pending: _Pending) -> None:
        self._pending.append(pending)
        self._available.set()

    async def take(self) -> list[_Pending]:
        """The next batch, once there is something."""
        await self._available.wait()
        await asyncio.sleep(BATCH_WAIT_S)
        batch = self._take()
        if not self._pending:
            self._available.clear()
        return batch

    def _take(self) -> list[_Pending]:
        size = 0
        for count, pending in enumerate(self._pending):
            size += len(pending.commands)
            if size > BATCH_SIZE_MAX and count > 0:
                batch, self._pending = self._pending[:count], self._pending[count:]
                return batch
        batch, self._pending = self._pending, []
        return batch


class CommandBatcher:
    """Collects commands and submits them, of each kind one batch at a time. :meth:`run` must be
    running."""

    def __init__(self, controller: ControllerPort, *, timeout_s: float) -> None:
        self._controller = controller
        self._timeout_s = timeout_s
        self._others, self._moves, self._elections = self._lanes = (_Lane(), _Lane(), _Lane())
        self.batches = 0
        """Submissions so far."""

    async def submit(
        self, commands: Sequence[ResourceCommand], *, is_wanted: Callable[[], bool] = lambda: True
    ) -> tuple[Outcome, ...]:
        """The outcomes of the commands, which stay together and in order.

        Args:
            is_wanted: Whether the commands are still to be carried out. Asked right before.

        Raises:
            CommandsOutdatedError: They are not wanted any more.
        """
        future: asyncio.Future[tuple[Outcome, ...]] = asyncio.get_running_loop().create_future()
        self._lane_of(commands).put(_Pending(tuple(commands), future, is_wanted))
        return await future

    def _lane_of(self, commands: Sequence[ResourceCommand]) -> _Lane:
        if any(isinstance(c, AlterPartitionReassignments | ReassignTopic) for c in commands):
            return self._moves
        if any(isinstance(c, ElectLeaders) for c in commands):
            return self._elections
        return self._others

    async def run(self) -> None:
        """Submit batches until cancelled."""
        running = [asyncio.create_task(self._run(lane)) for lane in self._lanes]
        try:
            await asyncio.gather(*running)  # raises a defect as it is, not in a group
        finally:
            await cancel(running)

    async def _run(self, lane: _Lane) -> None:
        now = asyncio.get_running_loop().time
        while True:
            batch = await lane.take()
            began = now()
            await self._carry_out(_wanted(batch))
            await asyncio.sleep(min(REST_PER_COST * (now() - began), REST_MAX_S))

    async def _carry_out(self, batch: list[_Pending]) -> None:
        if not batch:
            return
        commands = _merged([command for pending in batch for command in pending.commands])
        self.batches += 1
        try:
            # Not asyncio.wait_for: before Python 3.12 it drops a cancellation at this moment.
            async with asyncio.timeout(self._timeout_s):
                outcomes = await self._controller.submit(commands)
        except TimeoutError:
            outcomes = _refusals(
                commands, f"the controller did not answer within {self._timeout_s:g} seconds"
            )
        except asyncio.CancelledError:
            for pending in batch:
                pending.outcomes.cancel()
            raise
        except Exception:
            # The port promises not to raise. If it does, that is a defect; but the other resources
            # must not wait forever.
            logger.exception("Submitting commands failed")
            outcomes = _refusals(commands, "submitting the command failed; the log says why")
        by_command = dict(zip(map(id, commands), outcomes, strict=True))
        for pending in batch:
            if not pending.outcomes.done():
                pending.outcomes.set_result(
                    tuple(
                        _outcome_of(command, commands, by_command) for command in pending.commands
                    )
                )


def _wanted(batch: list[_Pending]) -> list[_Pending]:
    """Those of which somebody still waits for the outcomes, and wants them."""
    wanted = []
    for pending in batch:
        if pending.outcomes.done():
            continue
        if _is_wanted(pending):
            wanted.append(pending)
        else:
            pending.outcomes.set_exception(CommandsOutdatedError("they are not wanted any more"))
    return wanted


def _is_wanted(pending: _Pending) -> bool:
    try:
        return pending.is_wanted()
    except Exception:  # a defect of one resource, which stops no other
        logger.exception("Whether commands are still wanted cannot be found out")
        return False


def _merged(commands: list[ResourceCommand]) -> list[ResourceCommand]:
    """The commands in their order, with all readings of configurations folded into one.

    The controller carries neighbours of one type out together. The order of types is the one in
    which a resource asks for them, so what belongs together keeps its order.
    """
    topics = [
        topic
        for command in commands
        if isinstance(command, DescribeTopicConfigs)
        for topic in command.topics
    ]
    others = [command for command in commands if not isinstance(command, DescribeTopicConfigs)]
    others.sort(key=lambda command: command.order)
    reading = [DescribeTopicConfigs(tuple(dict.fromkeys(topics)))] if topics else []
    return [*reading, *others]


def _outcome_of(
    command: ResourceCommand, submitted: list[ResourceCommand], by_command: dict[int, Outcome]
) -> Outcome:
    if not isinstance(command, DescribeTopicConfigs):
        return by_command[id(command)]
    outcome = by_command[id(submitted[0])]
    if isinstance(outcome, Rejected):
        return outcome
    known = outcome.result or {}
    return Accepted({topic: known[topic] for topic in command.topics if topic in known})


def _refusals(commands: Sequence[ResourceCommand], message: str) -> list[Outcome]:
    return [Rejected(Reason.INTERNAL_ERROR, message) for _ in commands]
