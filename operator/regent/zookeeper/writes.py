"""Writing sets of znodes behind a guard: many operations per transaction, one result for each."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Final

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
    size_of,
)
from regent.zookeeper.reads import together

logger = logging.getLogger(__name__)

OPERATIONS_PER_REQUEST: Final = 1000
ROUNDS_PER_CHUNK_MAX: Final = 5
"""After so many rounds of conflicts the rest of a chunk is written one by one."""
PATHS_LOGGED_MAX: Final = 10

_REFUSAL_MESSAGES: Final = {
    ZkError.NO_AUTH: "No right to write znodes",
    ZkError.QUOTA_EXCEEDED: "A ZooKeeper quota does not allow to write znodes",
}


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
    ) -> None:
        self._generation = generation
        self._operations = operations
        self._guard = guard
        self._divides = divides
        self._chroot = chroot
        self._acl = acl
        self._sensitive_acl = sensitive_acl
        self._results: list[WriteResult | None] = [None] * len(operations)

    async def results(self) -> list[WriteResult]:
        """Carry everything out; see ``ZooKeeperPort.write`` for what is raised."""
        await together([self._write_chunk(chunk) for chunk in self._chunks()])
        if self._divides:  # else the caller tries again
            self._log_refusals()
        return [result for result in self._results if result is not None]

    def _log_refusals(self) -> None:
        """Not every caller looks at every result, and somebody has to give Regent the rights, or
        more room."""
        for refusal, message in _REFUSAL_MESSAGES.items():
            refused = [
                operation.path
                for operation, result in zip(self._operations, self._results, strict=True)
                if result is refusal
            ]
            if refused:
                logger.error(
                    message, extra={"count": len(refused), "paths": refused[:PATHS_LOGGED_MAX]}
                )

    async def _write_chunk(self, chunk: Sequence[int]) -> None:
        """Write some operations, given by their indices."""
        groups: Sequence[Sequence[int]] = [chunk]
        rounds = 0
        while groups:
            groups = await self._write_groups(groups)
            if not self._divides:
                break
            rounds += 1
            if rounds == ROUNDS_PER_CHUNK_MAX:
                groups = [[index] for group in groups for index in group]
        for group in groups:
            for index in group:
                self._results[index] = ZkError.ROLLED_BACK

    async def _write_groups(self, groups: Sequence[Sequence[int]]) -> list[Sequence[int]]:
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

    def _request(self, group: Sequence[int]) -> MultiWrite:
        operations = [self._operations[index] for index in group]
        return MultiWrite(
            [self._guard, *operations],
            chroot=self._chroot,
            acl=self._acl,
            sensitive_acl=self._sensitive_acl,
        )

    def _settle(self, group: Sequence[int], answer: Answer) -> tuple[Sequence[int], Sequence[int]]:
        """Note the results that an answer settles; return what it leaves open."""
        if isinstance(answer, Exception):
            raise unexpected(code_of(answer), self._operations[group[0]].path) from answer
        assert isinstance(answer, list)
        culprit = culprit_of(answer)
        if culprit is None:
            for index, written in zip(group, answer[1:], strict=True):
                self._results[index] = written
            return (), ()
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

    def _chunks(self) -> Iterator[Sequence[int]]:
        overhead = len(self._chroot.encode())
        settings = self._generation.settings
        largest = settings.jute_max_buffer - self._request([]).size
        enough = settings.bulk_request_bytes
        indices: list[int] = []
        size = 0
        for index, operation in enumerate(self._operations):
            added = size_of(operation, overhead=overhead, acl=len(self._acl))
            if added > largest:
                self._results[index] = ZkError.TOO_LARGE
                continue
            if indices and (len(indices) == OPERATIONS_PER_REQUEST or size + added > enough):
                yield indices
                indices, size = [], 0
            indices.append(index)
            size += added
        if indices:
            yield indices


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
