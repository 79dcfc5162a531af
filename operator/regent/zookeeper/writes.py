"""Writing sets of znodes behind a guard: many operations per transaction, one result for each."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from regent.model.entry_budget import EntryBudget
from regent.model.errors import ControllerMovedError
from regent.zk_data.operations import (
    Check,
    Create,
    Delete,
    Operation,
    WriteResult,
    Written,
    ZkError,
    operation_size,
)
from regent.zookeeper.errors import EXPECTED, REFUSALS, code_of, unexpected
from regent.zookeeper.generation import BATCH_SIZE, Answer, Generation
from regent.zookeeper.multi_write import (
    OK,
    RUNTIME_INCONSISTENCY,
    MultiWrite,
    WriteAnswer,
    sizes_of,
)
from regent.zookeeper.reads import together

logger = logging.getLogger(__name__)

OPERATIONS_PER_REQUEST: Final = 1000
ROUNDS_PER_CHUNK_MAX: Final = 5
"""After so many rounds of conflicts the rest of a chunk is written one by one."""
PATHS_LOGGED_MAX: Final = 10

_NO_OPERATIONS: Final = range(0)

_REFUSAL_MESSAGES: Final = {
    ZkError.NO_AUTH: "No right to write znodes",
    ZkError.QUOTA_EXCEEDED: "A ZooKeeper quota does not allow to write znodes",
}


class RefusalLog:
    """Not every caller looks at every result, and somebody has to give Regent the rights, or more
    room. As brokers ask for the same again and again, a few entries a minute are written.

    Args:
        clock: Monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._budgets = {refusal: EntryBudget() for refusal in _REFUSAL_MESSAGES}

    def note(self, operations: Sequence[Operation], results: Sequence[WriteResult]) -> None:
        """Log what of a write was refused."""
        for refusal, message in _REFUSAL_MESSAGES.items():
            refused = [
                operation.path
                for operation, result in zip(operations, results, strict=True)
                if result is refusal
            ]
            if refused:
                self._budgets[refusal].log(
                    logger.error,
                    message,
                    now=self._clock(),
                    count=len(refused),
                    paths=refused[:PATHS_LOGGED_MAX],
                )


class GuardedWrite:
    """One call of ``ZooKeeperPort.write``.

    Args:
        generation: The session to write under.
        operations: Independent of each other.
        guard: Checked in every transaction.
        divides: Whether the rest of a transaction with a conflict is tried again.
        chroot: Put before every path.
        acl: Serialized, for created nodes.
        sensitive_acl: The same for those that only brokers may read.
        refusals: Where what a server refuses is logged.

    An operation that no request can carry is not sent; its result is ``TOO_LARGE``.
    """

    def __init__(
        self,
        generation: Generation,
        operations: Sequence[Operation],
        *,
        guard: Check,
        divides: bool,
        chroot: str,
        acl: bytes,
        sensitive_acl: bytes,
        refusals: RefusalLog,
    ) -> None:
        self._generation = generation
        self._operations = operations
        self._guard = guard
        self._divides = divides
        self._chroot = chroot
        self._acl = acl
        self._sensitive_acl = sensitive_acl
        self._refusals = refusals
        self._results: list[WriteResult | None] = [None] * len(operations)

    async def results(self) -> list[WriteResult]:
        """Carry everything out; see ``ZooKeeperPort.write`` for what is raised."""
        await together([self._write_chunk(chunk) for chunk in self._chunks()])
        results = [result for result in self._results if result is not None]
        if self._divides:  # else the caller tries again
            self._refusals.note(self._operations, results)
        return results

    async def _write_chunk(self, chunk: range) -> None:
        """Write some operations, given by their indices."""
        groups = [chunk]
        rounds = 0
        while groups:
            groups = await self._write_groups(groups)
            if not self._divides:
                break
            rounds += 1
            if rounds == ROUNDS_PER_CHUNK_MAX:
                groups = [range(index, index + 1) for group in groups for index in group]
        for group in groups:
            for index in group:
                self._results[index] = ZkError.ROLLED_BACK

    async def _write_groups(self, groups: Sequence[range]) -> list[range]:
        """Write groups of operations, each in a transaction of its own.

        Returns:
            What is still to be written: of a group with a conflict, the operations before it and
            those after it.
        """
        requests = [self._request(group) for group in groups]
        batches = [requests[i : i + BATCH_SIZE] for i in range(0, len(requests), BATCH_SIZE)]
        answered = await together([self._generation.answers(batch) for batch in batches])
        answers = [answer for batch in answered for answer in batch]
        return [
            rest
            for group, answer in zip(groups, answers, strict=True)
            for rest in self._settle(group, answer)
            if rest
        ]

    def _request(self, group: range) -> MultiWrite:
        return MultiWrite(
            [self._guard, *self._operations[group.start : group.stop]],
            chroot=self._chroot,
            acl=self._acl,
            sensitive_acl=self._sensitive_acl,
        )

    def _settle(self, group: range, answer: Answer) -> tuple[range, range]:
        """Note the results that an answer settles; return what it leaves open."""
        if isinstance(answer, Exception):
            raise unexpected(code_of(answer), self._operations[group[0]].path) from answer
        assert isinstance(answer, list)
        culprit = culprit_of(answer)
        if culprit is None:
            assert len(answer) == 1 + len(group), "an answer to the guard, and one to each"
            self._results[group.start : group.stop] = answer[1:]
            return _NO_OPERATIONS, _NO_OPERATIONS
        position, code = culprit
        if position == 0:
            if code in EXPECTED:
                raise ControllerMovedError(
                    f"{self._guard.path} is not at version {self._guard.version}"
                )
            raise unexpected(code, self._guard.path)
        index = group[position - 1]
        self._results[index] = forgiven(self._operations[index], code)
        return group[: position - 1], group[position:]

    def _chunks(self) -> Iterator[range]:
        """Neighbours that one request can carry. Those on the same node stay together if they fit
        into one: each builds on the version that the one before leaves."""
        settings, operations = self._generation.settings, self._operations
        largest = settings.jute_max_buffer - self._request(_NO_OPERATIONS).size
        enough = settings.bulk_request_bytes
        start, size = 0, 0
        same_start, same_size = 0, 0  # from where on the neighbours are on the same node
        sizes = sizes_of(operations, overhead=len(self._chroot.encode()), acl=len(self._acl))
        for index, added in enumerate(sizes):
            if added > largest:
                self._results[index] = ZkError.TOO_LARGE
                if start < index:
                    yield range(start, index)
                start, size = index + 1, 0
                continue
            if start == index or operations[index].path != operations[index - 1].path:
                same_start, same_size = index, 0
            if start < index and (index - start == OPERATIONS_PER_REQUEST or size + added > enough):
                if start < same_start and same_size + added <= enough:
                    end, size = same_start, same_size
                else:
                    end, size = index, 0
                yield range(start, end)
                start = end
            size += added
            same_size += added
        if start < len(operations):
            yield range(start, len(operations))


def culprit_of(answers: Sequence[WriteAnswer]) -> tuple[int, int] | None:
    """Where and with which code a transaction failed; None if it did not."""
    for position, answer in enumerate(answers):
        if isinstance(answer, int) and answer not in (OK, RUNTIME_INCONSISTENCY):
            return position, answer
    return None


def too_large(operations: Sequence[Operation]) -> list[WriteResult]:
    """The results of a transaction that is too large to be sent."""
    sizes = [operation_size(operation) for operation in operations]
    results: list[WriteResult] = [ZkError.ROLLED_BACK] * len(operations)
    results[sizes.index(max(sizes))] = ZkError.TOO_LARGE
    return results


def forgiven(operation: Operation, code: int) -> WriteResult:
    """The result that the caller gets for an operation's error.

    Raises:
        UnexpectedZooKeeperError: If callers do not expect the error.
    """
    if code in REFUSALS:
        return REFUSALS[code]
    if code not in EXPECTED:
        raise unexpected(code, operation.path)
    error = EXPECTED[code]
    match operation, error:
        case Create(exist_ok=True), ZkError.NODE_EXISTS:
            return Written(-1)
        case Delete(missing_ok=True), ZkError.NO_NODE:
            return Written(-1)
        case _:
            return error
