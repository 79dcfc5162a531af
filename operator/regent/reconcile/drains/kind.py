"""BrokerDrain as a kind that is served."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from regent.reconcile.drains.claims import DrainClaim, claim_of, news
from regent.reconcile.kinds import KindDescriptor
from regent.resources.base import field_names
from regent.resources.broker_drain import (
    BrokerDrain,
    BrokerDrainSpec,
    UnreadableDrain,
    parse_broker_drain,
)
from regent.resources.broker_drain_status import BrokerDrainStatus
from regent.resources.kafka_topic import FINALIZER


def _subjects(body: Mapping[str, Any]) -> tuple[str, ...]:
    """The brokers that it drains."""
    drain = parse_broker_drain(body)
    if isinstance(drain, UnreadableDrain):
        return ()
    return tuple(map(str, dict.fromkeys(drain.spec.brokers)))


def _claim(body: Mapping[str, Any]) -> DrainClaim | None:
    return claim_of(parse_broker_drain(body))


BROKER_DRAIN: Final[KindDescriptor[BrokerDrain | UnreadableDrain, DrainClaim]] = KindDescriptor(
    kind=BrokerDrain.kind,
    spec_fields=field_names(BrokerDrainSpec),
    status_fields=field_names(BrokerDrainStatus),
    parse=parse_broker_drain,
    finalizer=FINALIZER,
    subjects=_subjects,
    claim=_claim,
    news=news,
)
