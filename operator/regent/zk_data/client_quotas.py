"""Quotas of users and clients, which are kept as configuration below ``/config`` (KIP-55, KIP-599).

Which of several applies is Kafka's: ``ClientQuotaManager.DefaultQuotaCallback``.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from regent.model.errors import MalformedZNodeError
from regent.zk_data.config import decode_entity_config
from regent.zk_data.paths import (
    client_config,
    is_entity_name,
    user_client_config,
    user_config,
)

CONTROLLER_MUTATION_RATE: Final = "controller_mutation_rate"
"""Partitions that may be created and deleted in a second (KIP-599)."""


class QuotaEntity(NamedTuple):
    """Whom a quota can be set for.

    Attributes:
        path: Where it is.
        by_user: Each user has it for himself, also if it is the default.
        by_client: The same for each client id.
    """

    path: str
    by_user: bool
    by_client: bool


def quota_entities(user: str, client_id: str) -> tuple[QuotaEntity, ...]:
    """Whose quotas a client can be subject to: the first that has one is the one that counts.

    Names that cannot be those of znodes have the defaults only.
    """
    users, clients = _names(user), _names(client_id)
    entities: list[QuotaEntity] = []
    for u in users:
        entities += [
            QuotaEntity(user_client_config(u, c), by_user=True, by_client=True) for c in clients
        ]
        entities.append(QuotaEntity(user_config(u), by_user=True, by_client=False))
    entities += [QuotaEntity(client_config(c), by_user=False, by_client=True) for c in clients]
    return tuple(entities)


def _names(name: str) -> tuple[str | None, ...]:
    """Those whose quotas count: its own, and None for the default."""
    return (name, None) if is_entity_name(name) else (None,)


def decode_mutation_rate(path: str, data: bytes) -> float | None:
    """The rate in partitions a second; None if there is none.

    Raises:
        MalformedZNodeError: If the node does not decode, or this is not a rate.
    """
    text = decode_entity_config(path, data).get(CONTROLLER_MUTATION_RATE)
    if text is None:
        return None
    try:
        rate = float(text)
    except ValueError:
        rate = math.nan
    if not (math.isfinite(rate) and rate >= 0):
        raise MalformedZNodeError(path, f"{CONTROLLER_MUTATION_RATE} is {text[:100]!r}, not a rate")
    return rate
