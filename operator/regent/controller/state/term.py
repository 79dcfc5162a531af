"""The term of a controller: from its election to its resignation."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from regent.model.cluster import Address


class Term(msgspec.Struct, frozen=True):
    """What an election gives, and what every write and request of the winner carries.

    Attributes:
        controller_id: Our id in ``/controller``.
        epoch: Our controller epoch.
        epoch_zk_version: dataVersion of ``/controller_epoch``: the fence of every write.
        served: As in :class:`~regent.controller.config.ControllerConfig`.
        announced_listeners: Likewise.
    """

    controller_id: int
    epoch: int
    epoch_zk_version: int
    served: Mapping[str, Address] = MappingProxyType({})
    announced_listeners: frozenset[str] = frozenset()
