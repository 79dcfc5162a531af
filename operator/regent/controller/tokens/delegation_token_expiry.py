"""Delegation tokens that have expired are removed, and the brokers notified.

Brokers issue and renew tokens, write them to ZooKeeper, and keep all of them in memory. Of their
expiry only the controller takes care: a broker accepts a token as long as it knows it.

Removal and notification are one transaction: with a crash in between, the brokers would accept the
token until they restart. It is conditional, so a renewal at the same moment wins. Upstream removes
what it remembers, in two writes.

What a failed transaction leaves is found by the next check. None of this is a reason to give the
controller up: tokens may be closed to us (Kafka lets nobody but brokers read them), and there
are none where brokers accept none.

Source: ``DelegationTokenManager.expireTokens``, scheduled by
``KafkaController.onControllerFailover``; KIP-48.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from regent.controller.active_controller import ActiveController
from regent.controller.effects import ArmTimer, CurrentTime, Enqueue
from regent.controller.events import DelegationTokenExpiry
from regent.controller.state.context import ControllerContext
from regent.controller.transitions.partition_state_znodes import epoch_guard
from regent.model.errors import (
    MalformedZNodeError,
    UnexpectedZooKeeperError,
    ZooKeeperUnavailableError,
)
from regent.model.log import StructuredLog, examples
from regent.zk_data.delegation_tokens import (
    decode_delegation_token,
    delegation_token,
    encode_token_change,
    token_change_prefix,
)
from regent.zk_data.effects import Multi
from regent.zk_data.operations import Create, Delete, ZkError, ZNode
from regent.zk_data.paths import DELEGATION_TOKENS
from regent.zk_data.permitted_reads import list_permitted, read_permitted
from regent.zk_data.transactions import all_written, raise_if_moved

FIRST_CHECK_MS: Final = 5_000
"""After the election, so that the check delays nothing of it. Upstream: at once."""
REMOVED_AT_A_TIME: Final = 100
"""In one event: others wait meanwhile."""

_TIMER: Final = "delegation token expiry"


class _Expired(NamedTuple):
    """A token and the version of its node that says so."""

    token_id: str
    version: int


async def schedule_first_check(active: ActiveController) -> None:
    """Begin to look for expired tokens, if that is enabled. A resignation ends it."""
    if active.config.delegation_token_expiry_check_interval_ms is not None:
        await ArmTimer(_TIMER, FIRST_CHECK_MS, DelegationTokenExpiry())


async def process_delegation_token_expiry(active: ActiveController) -> None:
    """Remove tokens that have expired, and arm the timer of the next check.

    Raises:
        ControllerMovedError: Another controller was elected.
    """
    expired = await _find_expired(active.log)
    removed, is_interrupted = await _remove(active.context, expired[:REMOVED_AT_A_TIME], active.log)
    if removed:
        active.log.info(
            "Delegation tokens expired", tokens=len(removed), examples=examples(removed)
        )
    if len(expired) > REMOVED_AT_A_TIME and removed and not is_interrupted:
        await Enqueue(DelegationTokenExpiry())
        return
    interval_ms = active.config.delegation_token_expiry_check_interval_ms
    if interval_ms is not None:
        await ArmTimer(_TIMER, interval_ms, DelegationTokenExpiry())


async def _find_expired(log: StructuredLog) -> list[_Expired]:
    (children,) = await list_permitted([DELEGATION_TOKENS], log)
    if not children:
        return []
    token_ids = sorted(children)
    nodes = await read_permitted([delegation_token(token_id) for token_id in token_ids])
    return list(_expired(token_ids, nodes, await CurrentTime(), log))


def _expired(
    token_ids: Sequence[str], nodes: Sequence[ZNode | None], now_ms: int, log: StructuredLog
) -> Iterable[_Expired]:
    malformed: list[MalformedZNodeError] = []
    for token_id, node in zip(token_ids, nodes, strict=True):
        if node is None:
            continue
        try:
            times = decode_delegation_token(delegation_token(token_id), node.data)
        except MalformedZNodeError as error:
            malformed.append(error)
            continue
        if times.are_over(now_ms):
            yield _Expired(token_id, node.version)
    if malformed:
        log.error(
            "Malformed delegation tokens left alone",
            tokens=len(malformed),
            examples=examples(f"{error.path}: {error.reason}" for error in malformed),
        )


async def _remove(
    context: ControllerContext, tokens: Sequence[_Expired], log: StructuredLog
) -> tuple[list[str], bool]:
    """Remove tokens, each in a transaction of its own: one that was renewed keeps no other.

    Returns:
        Ids of the removed ones, and whether ZooKeeper has refused one or did not answer.
    """
    removed: list[str] = []
    for token in tokens:
        try:
            results = await Multi(
                [
                    epoch_guard(context),
                    Delete(delegation_token(token.token_id), token.version),
                    Create(
                        token_change_prefix(), encode_token_change(token.token_id), sequential=True
                    ),
                ]
            )
        except (UnexpectedZooKeeperError, ZooKeeperUnavailableError) as error:
            log.error(
                "Delegation token not removed, tried again by the next check",
                token=token.token_id,
                answer=str(error),
            )
            return removed, True
        raise_if_moved(results)
        if all_written(results):
            removed.append(token.token_id)
        elif results[1] is ZkError.ROLLED_BACK:  # it is the notification that was refused
            log.error(
                "Delegation token not removed, tried again by the next check",
                token=token.token_id,
                answer=str(results[2]),
            )
            return removed, True
    return removed, False
