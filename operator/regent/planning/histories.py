"""Which loads of which history a plan is made from (docs/history.md)."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannerHistory:
    """What is taken from a history instead of what a snapshot has.

    Attributes:
        place: A folder, or a URL.
        window_s: How long before its newest sample it counts.
        percentile: Of the loads; 100 is the peak.
        max_age_s: How old its newest sample may be.
        cluster: Id of the Kafka cluster; None: the history has one only.
    """

    place: str
    window_s: int
    percentile: int
    max_age_s: int
    cluster: str | None

    @property
    def is_url(self) -> bool:
        """Whether the place is a URL, and no folder."""
        return urlsplit(self.place).scheme != ""

    def arguments(self) -> tuple[str, ...]:
        """Options of ``regent plan make``, which the driver of a job on Spark takes, too."""
        cluster = () if self.cluster is None else (f"--cluster={self.cluster}",)
        return (
            f"--history={self.place}",
            f"--window={self.window_s}s",
            f"--percentile={self.percentile}",
            f"--history-max-age={self.max_age_s}s",
            *cluster,
        )
