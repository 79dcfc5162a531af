"""What the statuses of all kinds have in common."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final, Self

from pydantic import Field

from regent.resources.base import ApiModel
from regent.resources.conditions import (
    Condition,
    ConditionReason,
    ConditionStatus,
    Verdict,
    rfc3339,
    update_conditions,
)

UNOBSERVED: Final = -1
"""``observedGeneration`` of a status that no Regent has written. Generations begin with 1."""

_LONG_AGO: Final = datetime.fromtimestamp(0, UTC)
_PENDING_MESSAGE: Final = (
    "No Regent has reconciled this resource yet. If this lasts, check that a Regent runs that "
    "serves the namespace and spec.clusterRef of the resource."
)


def unobserved_status(condition_types: Sequence[str]) -> dict[str, Any]:
    """Return the status that the API server shows until a Regent writes a status.

    kstatus takes a resource without a status for ready, so Flux and Helm would continue before
    Regent has seen the resource. The definitions of the Gateway API have the same default.

    Args:
        condition_types: Types of the conditions that the kind has, in their order.
    """
    conditions = [
        Condition(
            type=type_,
            status=ConditionStatus.UNKNOWN,
            observed_generation=0,
            last_transition_time=rfc3339(_LONG_AGO),
            reason=ConditionReason.PENDING,
            message=_PENDING_MESSAGE,
        )
        for type_ in condition_types
    ]
    return {
        "observedGeneration": UNOBSERVED,
        "conditions": [condition.to_api() for condition in conditions],
    }


def conditions_field(which: str) -> Any:
    """The field ``conditions`` of a kind.

    Args:
        which: Says which conditions the kind has.
    """
    return Field(
        default=(),
        description=which,
        max_length=16,
        json_schema_extra={
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
        },
    )


class ResourceStatus(ApiModel):
    """Base of the statuses; each kind says which conditions it has."""

    observed_generation: int | None = Field(
        default=None,
        description="metadata.generation that this status was computed for; "
        f"{UNOBSERVED}: no Regent has reconciled the resource yet.",
        ge=UNOBSERVED,
    )
    conditions: tuple[Condition, ...] = ()

    def with_verdicts(
        self, verdicts: Sequence[Verdict], *, generation: int, now: datetime, **fields: Any
    ) -> Self:
        """This status for a generation, with the conditions that say what ``verdicts`` say.

        Args:
            fields: What else changes, by name.
        """
        conditions = update_conditions(self.conditions, verdicts, generation=generation, now=now)
        return self.model_copy(
            update={**fields, "observed_generation": generation, "conditions": conditions}
        )
