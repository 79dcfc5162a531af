"""Which controller epochs are used up already, whatever ``/controller_epoch`` says.

The node may fall behind: ZooKeeper was restored from a backup, or somebody has deleted or edited
it. Then brokers refuse a controller whose epoch is not above that of the last one they have obeyed,
and partitions may not be changed whose states have a higher one. To raise the node by one with each
election, as every controller does, would take as many elections as it is behind.

Three things tell: the epochs of this process's own terms; states of partitions; and brokers that
refuse, who do not say which epoch they know. For these the node is raised by more each time.
"""

from __future__ import annotations

from typing import Final

import msgspec

from regent.zk_data.decoding import EPOCH_MAX

_DOUBLINGS_MAX: Final = 20

_FORGIVE_AFTER_MS: Final = 600_000
"""Refusals further apart are those of a controller that was elected meanwhile."""


class EpochFloor(msgspec.Struct):
    """What the next election has to exceed; pure, by the times that it is given.

    Attributes:
        value: The highest epoch that is used up as far as known.
    """

    value: int = -1
    _refusals: int = 0
    _refused_at_ms: int = 0

    def note(self, epoch: int) -> None:
        """That epoch is used up."""
        if epoch <= EPOCH_MAX:
            self.value = max(self.value, epoch)

    def exceeds(self, epoch: int, *, of_term: int) -> bool:
        """Whether it takes another election to get above an epoch, and one can."""
        return of_term < epoch <= EPOCH_MAX

    def note_refusal(self, epoch: int, now_ms: int) -> None:
        """Brokers obey a controller with a higher epoch than ours was. The first time that may well
        be one that was elected."""
        if not 0 <= now_ms - self._refused_at_ms <= _FORGIVE_AFTER_MS:
            self._refusals = 0
        self._refused_at_ms = now_ms
        self.note(epoch + (1 << min(self._refusals, _DOUBLINGS_MAX)) - 1)
        self._refusals += 1
