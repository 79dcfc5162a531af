"""The nodes that everything hangs below: without them nothing can be written, or watched."""

from __future__ import annotations

from regent.controller.active_controller import ActiveController
from regent.controller.transitions.partition_state_znodes import epoch_guard
from regent.model.errors import UnexpectedZooKeeperError
from regent.model.log import examples
from regent.zk_data import paths
from regent.zk_data.effects import Exists, Write
from regent.zk_data.operations import Create, ZkError


async def create_persistent_paths(active: ActiveController) -> list[str]:
    """Create what a broker creates at its start and is missing; the paths.

    Raises:
        UnexpectedZooKeeperError: One of them can neither be found nor created.
    """
    existing = await Exists(paths.PERSISTENT_PATHS)
    missing = [p for p, exists in zip(paths.PERSISTENT_PATHS, existing, strict=True) if not exists]
    for path in missing:  # parents first
        (result,) = await Write([Create(path, exist_ok=True)], guard=epoch_guard(active.context))
        if isinstance(result, ZkError):
            raise UnexpectedZooKeeperError(result.value, path)
    return missing


async def restore_persistent_paths(active: ActiveController) -> None:
    """Create those again that somebody has deleted meanwhile, as far as we may."""
    try:
        missing = await create_persistent_paths(active)
    except UnexpectedZooKeeperError as error:
        active.log.error(
            "A node that Kafka needs is missing and cannot be created", reason=str(error)
        )
        return
    if missing:
        active.log.warning(
            "Nodes that Kafka needs were deleted, created again",
            nodes=len(missing),
            examples=examples(missing),
        )
