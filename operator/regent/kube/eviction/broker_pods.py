"""Which broker a pod is, and whether it lives."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from regent.model.errors import RegentError
from regent.resources.kind import GROUP

BROKER_ID_ANNOTATION: Final = f"{GROUP}/broker-id"

_CONTROLLERS: Final = ("StatefulSet", "StrimziPodSet")
"""Kinds that number their pods, and make them again under the same name."""

_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?", re.ASCII)
_ORDINAL: Final = re.compile(r"-([0-9]+)$", re.ASCII)
_BROKER_ID: Final = re.compile(r"[0-9]{1,9}", re.ASCII)


class UnknownBrokerError(RegentError):
    """Nothing says which broker a pod is."""


def is_name(text: str) -> bool:
    """Whether a pod can have this name, or a namespace. Names become paths of the API: nobody who
    writes one must be able to choose another path."""
    return _NAME.fullmatch(text) is not None


def is_broker(pod: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Whether a pod has all of the labels."""
    return labels.items() <= _texts(pod, "labels").items()


def broker_of(pod: Mapping[str, Any], *, label: str | None) -> int:
    """The id of the broker that a pod is.

    Args:
        label: Name of the label that has the id; None: there is none.

    Raises:
        UnknownBrokerError: What should say so is missing, or is no id.
    """
    name = pod["metadata"]["name"]
    annotated = _texts(pod, "annotations").get(BROKER_ID_ANNOTATION)
    if annotated is not None:
        return _id(annotated, f"the annotation {BROKER_ID_ANNOTATION} of pod {name}")
    if label is not None:
        value = _texts(pod, "labels").get(label)
        if value is None:
            raise UnknownBrokerError(
                f"pod {name} has no label {label}, which eviction_broker_id_label names: set it, "
                f"or the annotation {BROKER_ID_ANNOTATION}"
            )
        return _id(value, f"the label {label} of pod {name}")
    ordinal = _ORDINAL.search(name)
    if ordinal is None or not _is_numbered(pod):
        raise UnknownBrokerError(
            f"pod {name} is not one of a StatefulSet with a number at the end of its name: set its "
            f"annotation {BROKER_ID_ANNOTATION}, or the setting eviction_broker_id_label"
        )
    return _id(ordinal[1], f"the end of the name of pod {name}")


def is_out_of_use(pod: Mapping[str, Any]) -> bool:
    """Whether no broker runs in it that could be drained: it has ended, has not started, or is
    being deleted. Kubernetes evicts such pods whatever a PodDisruptionBudget says.
    """
    phase = _status(pod).get("phase")
    is_being_deleted = pod["metadata"].get("deletionTimestamp") is not None
    return is_being_deleted or phase in ("Pending", "Succeeded", "Failed")


def is_ready(pod: Mapping[str, Any]) -> bool:
    """Whether the pod is Ready and stays."""
    if pod["metadata"].get("deletionTimestamp") is not None:
        return False
    return any(
        condition.get("type") == "Ready" and condition.get("status") == "True"
        for condition in _status(pod).get("conditions") or ()
    )


def _is_numbered(pod: Mapping[str, Any]) -> bool:
    owners = pod["metadata"].get("ownerReferences") or ()
    return any(owner.get("controller") and owner.get("kind") in _CONTROLLERS for owner in owners)


def _id(text: str, where: str) -> int:
    if _BROKER_ID.fullmatch(text) is None:
        raise UnknownBrokerError(f"{where} is {text!r}, which is no id of a broker")
    return int(text)


def _texts(pod: Mapping[str, Any], field: str) -> dict[str, str]:
    return pod["metadata"].get(field) or {}


def _status(pod: Mapping[str, Any]) -> Mapping[str, Any]:
    return pod.get("status") or {}
