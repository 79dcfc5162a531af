"""What the statuses of all kinds have in common."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Self

from pydantic import Field

from regent.resources.base import ApiModel
from regent.resources.conditions import Condition, Verdict, update_conditions


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
        default=None, description="metadata.generation that this status was computed for.", ge=0
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
