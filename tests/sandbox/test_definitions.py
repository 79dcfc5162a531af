"""Waiting for CustomResourceDefinitions, with the answers that an API server gives meanwhile."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sandbox.definitions import wait_until_established

NEW: dict[str, Any] = {"conditions": None, "storedVersions": None}
NAMED = {"conditions": [{"type": "NamesAccepted", "status": "True"}]}
REFUSED = {"conditions": [{"type": "Established", "status": "False"}]}
ESTABLISHED = {"conditions": [{"type": "Established", "status": "True"}]}


class _Answers:
    """What kubectl prints, one answer after the other."""

    def __init__(self, *answers: dict[str, Any]) -> None:
        self.left = list(answers)

    def __call__(self, *arguments: str | Path) -> str:
        assert arguments == ("get", "--output=json", "crd", "--all")
        return json.dumps(self.left.pop(0))


def definition(name: str, status: dict[str, Any] | None) -> dict[str, Any]:
    found: dict[str, Any] = {"metadata": {"name": name}}
    return found if status is None else {**found, "status": status}


def listed(*statuses: dict[str, Any]) -> dict[str, Sequence[dict[str, Any]]]:
    return {"items": [definition(f"kind-{i}", status) for i, status in enumerate(statuses)]}


def test_a_definition_without_conditions_is_awaited() -> None:
    states = [None, NEW, NAMED, REFUSED, ESTABLISHED]
    kubectl = _Answers(*(definition("kafkatopics", status) for status in states))
    wait_until_established(kubectl, "crd", "--all")
    assert not kubectl.left


def test_every_definition_is_awaited() -> None:
    kubectl = _Answers(
        listed(ESTABLISHED, NEW), listed(REFUSED, ESTABLISHED), listed(ESTABLISHED, ESTABLISHED)
    )
    wait_until_established(kubectl, "crd", "--all")
    assert not kubectl.left
