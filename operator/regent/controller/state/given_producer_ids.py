"""Which producer ids this process has given away, whatever ``/latest_producer_id_block`` says.

The node may fall behind: ZooKeeper was restored from a backup, or somebody has deleted or edited
it. An id that two producers have costs records: a broker takes what the second one sends for what
it has from the first one already, and acknowledges it without storing it.
"""

from __future__ import annotations

import msgspec


class GivenProducerIds(msgspec.Struct):
    """What the next block has to be above; over all terms of a process.

    Attributes:
        next_id: The lowest id that this process knows nobody to have.
    """

    next_id: int = 0

    def note(self, next_id: int) -> None:
        """Whatever is below that was given away."""
        self.next_id = max(self.next_id, next_id)
