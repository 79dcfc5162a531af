"""Reading statuses that another version of Regent, or a person by hand, might have written."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any, Final, NamedTuple, TypeVar

from pydantic import ValidationError

from regent.resources.base import ApiModel
from regent.resources.resource_status import UNOBSERVED, unobserved_status

StatusT = TypeVar("StatusT", bound=ApiModel)

_SUPPLIED: Final = frozenset(unobserved_status(()))
"""Fields of a status that the definition supplies."""


class FieldProblem(NamedTuple):
    """What is wrong with a field.

    Attributes:
        field: Its path, such as ``status.plan.hash``.
        problem: As a sentence.
    """

    field: str
    problem: str


def read_status(
    model: type[StatusT], stored: Mapping[str, Any], *, record: Set[str] = frozenset()
) -> tuple[StatusT, FieldProblem | None]:
    """Read a stored status. Return the readable part, and the problem if that part is not enough.

    Unreadable fields count as absent, because a newer Regent has phases that this Regent does not
    know. An unreadable field of the record is a problem: no other source has these facts, and
    without them Regent would forget, or repeat, what has begun.

    The fields that the definition supplies until a Regent has written a status count as absent.

    Args:
        stored: The status as the API has it.
        record: Names of the fields of the record, as the API has them.
    """
    if stored.get("observedGeneration") == UNOBSERVED:
        stored = {name: stored[name] for name in stored.keys() - _SUPPLIED}
    try:
        return model.model_validate(stored), None
    except ValidationError as error:
        unreadable = {each["loc"][0] for each in error.errors(include_url=False)}
        problem = first_problem("status", error) if unreadable & record else None
    rest = {name: value for name, value in stored.items() if name not in unreadable}
    return model.model_validate(rest), problem


def first_problem(part: str, error: ValidationError) -> FieldProblem:
    """The first of several problems with a part of an object."""
    first = error.errors(include_url=False, include_input=False)[0]
    return FieldProblem(".".join((part, *map(str, first["loc"]))), first["msg"])
