"""The term of a controller: from its election to its resignation."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from regent.model.cluster import Address


class DeposedHolder(msgspec.Struct, frozen=True):
    """Who held ``/controller`` until an election took it away.

    Attributes:
        controller_id: The id in the node.
        session_id: The ZooKeeper session that owned it.
    """

    controller_id: int
    session_id: int


class Term(msgspec.Struct, frozen=True):
    """What an election gives, and what every write and request of the winner carries.

    Attributes:
        controller_id: Our id in ``/controller``.
        epoch: Our controller epoch.
        epoch_zk_version: dataVersion of ``/controller_epoch``: the fence of every write.
        served: As in :class:`~regent.controller.config.ControllerConfig`.
        listener_addresses: Likewise.
        announced_listeners: Likewise.
        deposed: Whom the election has deposed; None: nobody held the node.
    """

    controller_id: int
    epoch: int
    epoch_zk_version: int
    served: Mapping[str, Address] = MappingProxyType({})
    listener_addresses: Mapping[str, Address] = MappingProxyType({})
    announced_listeners: frozenset[str] = frozenset()
    deposed: DeposedHolder | None = None
