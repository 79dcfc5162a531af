"""The term of a controller: from its election to its resignation."""

from __future__ import annotations

import msgspec


class Term(msgspec.Struct, frozen=True):
    """What an election gives, and what every write and request of the winner carries.

    Attributes:
        controller_id: Our id in ``/controller``.
        epoch: Our controller epoch.
        epoch_zk_version: dataVersion of ``/controller_epoch``: the fence of every write.
    """

    controller_id: int
    epoch: int
    epoch_zk_version: int
