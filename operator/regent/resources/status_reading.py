"""Reading statuses that another version of Regent, or somebody by hand, may have written."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any, NamedTuple, TypeVar

from pydantic import ValidationError

from regent.resources.base import ApiModel

StatusT = TypeVar("StatusT", bound=ApiModel)


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
    """What can be read of a status; and what is wrong if that is not enough.

    Fields that cannot be read count as absent: a newer Regent has phases that this one does not
    know. But for those of the record, which nothing else says: without them what was begun would
    be forgotten, or begin again.

    Args:
        stored: The status as the API has it.
        record: Names of the fields of the record, as the API has them.
    """
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
