"""A replica of Regent as the others know it."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from regent.model.cluster import Address


class ReplicaPresence(msgspec.Struct, frozen=True):
    """A replica as it has registered itself.

    Attributes:
        instance: Another one for each process, whatever address it has.
        controller_id: The id under which it holds ``/controller`` when it leads.
        address: Where it answers heartbeats.
    """

    instance: str
    controller_id: int
    address: Address

    def __str__(self) -> str:
        return f"Regent {self.controller_id} at {self.address.host}:{self.address.port}"


class SuspectedReplica(NamedTuple):
    """A replica that is suspected.

    Attributes:
        why: Reason of the suspicion, for people.
        is_dead: Whether its process has certainly ended.
    """

    why: str
    is_dead: bool
