"""Which rights this process has on the objects of a kind, namespace by namespace.

Asked for with SelfSubjectAccessReviews, which every authenticated user may create
(``system:basic-user``). Where even that was taken away, every right is assumed until a request is
refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, NamedTuple

from regent.kube.client import KubeClient
from regent.kube.errors import KubeApiError
from regent.resources.kind import GROUP, ResourceKind

_REVIEWS: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


class Right(NamedTuple):
    """A verb on objects of a kind or their status."""

    verb: str
    subresource: str = ""

    @property
    def is_reading(self) -> bool:
        return self.verb in ("list", "watch")

    def on(self, kind: ResourceKind) -> str:
        """In words."""
        return f"{self.verb} {kind.crd_name}" + (f"/{self.subresource}" if self.subresource else "")


LIST: Final = Right("list")
NEEDED: Final = (
    LIST,
    Right("watch"),
    Right("get"),  # after a conflict, and to find a backup that was restored
    Right("patch"),
    Right("patch", "status"),
)


async def missing_rights(client: KubeClient, kind: ResourceKind, namespace: str) -> list[Right]:
    """The needed rights that this process does not have in a namespace; "": in all of them.

    Raises:
        KubeError: The API server does not answer.
    """
    granted = await asyncio.gather(
        *(_is_granted(client, kind, right, namespace) for right in NEEDED)
    )
    return [right for right, is_granted in zip(NEEDED, granted, strict=True) if not is_granted]


def describe_missing(rights: Sequence[Right], kind: ResourceKind, namespace: str) -> str:
    """What is missing where, and what to do."""
    named = ", ".join(right.on(kind) for right in rights)
    if not namespace:
        return (
            f"missing right: {named} in all namespaces; bind Regent's ClusterRole, or name the "
            "namespaces that it serves"
        )
    return (
        f"missing right: {named} in namespace {namespace}; create the namespace and bind Regent's "
        "Role there, or take it off the list of namespaces; if the namespace is being deleted, its "
        f"Role is gone already: `regent release --all --namespace {namespace}` lets its "
        "KafkaTopics go"  # no other kind has a finalizer
    )


class Lack(NamedTuple):
    """What is missing in a namespace, for people; None: nothing of the kind.

    Attributes:
        reading: Without it nothing in the namespace can be served.
        writing: Without it finalizers or statuses stay as they are, at least those that somebody
            else changes at the same moment; without the right to get, a restored backup is not
            noticed, either. Not stated beside ``reading``.
    """

    reading: str | None = None
    writing: str | None = None


def lack_of(missing: Sequence[Right], kind: ResourceKind, namespace: str) -> Lack:
    """What the missing ones among the needed rights keep from being done."""
    reading = [right for right in missing if right.is_reading]
    if reading:
        return Lack(reading=describe_missing(reading, kind, namespace))
    return Lack(writing=describe_missing(missing, kind, namespace) if missing else None)


async def _is_granted(client: KubeClient, kind: ResourceKind, right: Right, namespace: str) -> bool:
    attributes = {
        "group": GROUP,
        "resource": kind.plural,
        "subresource": right.subresource,
        "verb": right.verb,
        "namespace": namespace,
    }
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    try:
        answer = await client.create(_REVIEWS, review)
    except KubeApiError as error:
        if error.status >= 500 or error.status == 429:
            raise
        return True
    return bool(answer.get("status", {}).get("allowed"))
