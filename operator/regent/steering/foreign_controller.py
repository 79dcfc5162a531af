"""Who is the controller, as ZooKeeper says: ``/controller`` and ``/controller_epoch``."""

from __future__ import annotations

from typing import Final, NamedTuple

from regent.model.active_regent import ActiveRegent
from regent.model.errors import MalformedZNodeError
from regent.zk_data import paths
from regent.zk_data.controller import (
    decode_active_regent,
    decode_controller,
    decode_controller_epoch,
    is_kraft_controller,
)
from regent.zk_data.effects import Exists, ReadData
from regent.zk_data.operations import ZNode

WATCHED: Final = (paths.CONTROLLER, paths.CONTROLLER_EPOCH)


class ForeignController(NamedTuple):
    """The controller of the cluster.

    Attributes:
        controller_id: -1: nobody is, at the moment.
        epoch: Of the last election.
        epoch_zk_version: dataVersion of ``/controller_epoch``.
        regent: What it says of itself if it is a Regent.
    """

    controller_id: int
    epoch: int
    epoch_zk_version: int
    regent: ActiveRegent | None = None


async def read_controller() -> ForeignController | str:
    """The controller; or why there is none that could be asked, for people. Leaves watches."""
    await Exists(WATCHED, watch=True)
    controller, epoch = await ReadData(WATCHED)
    try:
        return _judged(controller, epoch)
    except MalformedZNodeError as error:
        return f"{error.path} cannot be read: {error.reason}"


def _judged(controller: ZNode | None, epoch: ZNode | None) -> ForeignController | str:
    if epoch is None:
        return "the Kafka cluster has never had a controller; start its brokers"
    if controller is not None and is_kraft_controller(controller.data):
        return "a KRaft controller migrates the cluster: topics are changed through Kafka only"
    return ForeignController(
        -1 if controller is None else decode_controller(controller.data),
        decode_controller_epoch(epoch.data),
        epoch.version,
        None if controller is None else decode_active_regent(controller.data),
    )
