"""What Regent has to know of a kind of resource to serve it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from regent.reconcile.request import ResourceT
from regent.resources.kind import ResourceKind

ClaimT = TypeVar("ClaimT")


@dataclass(frozen=True, slots=True, kw_only=True)
class KindDescriptor(Generic[ResourceT, ClaimT]):
    """A kind of resource. Its functions take objects as the API has them.

    Attributes:
        kind: Its names, and its paths in the API.
        spec_fields: Names of the fields of its spec, ``status_fields`` of its status, also of those
            within others.
        parse: Reads an object; one whose spec cannot be read becomes a value that says so.
        finalizer: Regent's own. Not every kind is given it; from one that is being deleted it is
            taken off.
        subjects: What an object declares, by name: a topic, for instance. Several resources that
            declare the same have to know of each other.
        claim: The claim of an object to its subjects; None: it claims nothing. Claims that are
            equal say the same: a change that leaves the claim as it is, is no news for rivals.
        news: For which rivals it is news that the claim of another object was the first and is the
            second (None: it claims nothing, or does not exist), by their claims. The third are all
            claims to the subject, as they are now. If all changes are news for all, n objects with
            one subject cost n squared reconciliations.
    """

    kind: ResourceKind
    spec_fields: frozenset[str]
    status_fields: frozenset[str]
    parse: Callable[[Mapping[str, Any]], ResourceT]
    finalizer: str
    subjects: Callable[[Mapping[str, Any]], tuple[str, ...]]
    claim: Callable[[Mapping[str, Any]], ClaimT | None]
    news: Callable[
        [ClaimT | None, ClaimT | None, Collection[ClaimT]], Callable[[ClaimT | None], bool]
    ] = lambda *_: lambda _: True
