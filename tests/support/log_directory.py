"""A log directory of a broker that fails and is mended."""

from __future__ import annotations

from tests.support.cluster import Cluster


class LogDirectory:
    """One of a broker's log directories. A file in its place makes it fail, for root as well."""

    def __init__(self, cluster: Cluster, broker_id: int) -> None:
        self._path = cluster.broker(broker_id).state_path / "data-1"
        self._away = self._path.with_name("data-1-away")

    def holds(self, topic: str, partition: int) -> bool:
        return (self._path / f"{topic}-{partition}").is_dir()

    def fail(self) -> None:
        self._path.rename(self._away)
        self._path.touch()

    def mend(self) -> None:
        self._path.unlink()
        self._away.rename(self._path)
