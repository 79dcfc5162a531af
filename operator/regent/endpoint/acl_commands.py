"""Commands that give a peer the rights it lacks: what a refusal tells an administrator to do."""

from __future__ import annotations

import shlex
from typing import Final

from regent.model.acls import Action, ResourceType

MAX_NAME: Final = 249
"""Characters of a resource's name that are reported: no topic's name has more."""


def grant_command(principal: str, action: Action) -> str:
    """The call of ``kafka-acls`` that lets a principal do something.

    It is to be copied to a shell, and its names are a choice of the peer: they are quoted.
    """
    name = shlex.quote(action.name[:MAX_NAME])
    is_cluster = action.resource_type is ResourceType.CLUSTER
    resource = "--cluster" if is_cluster else f"--{action.resource_type.lower()} {name}"
    return (
        f"kafka-acls --add --allow-principal {shlex.quote(principal)} "
        f"--operation {action.operation} {resource}"
    )
