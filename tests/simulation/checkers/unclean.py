"""When a leader from outside the ISR is allowed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from regent.admin.commands import ElectionType, ElectLeaders
from regent.controller.events import CommandsReceived
from regent.model.errors import MalformedZNodeError
from regent.model.partition import TopicPartition
from regent.zk_data import paths
from regent.zk_data.config import decode_entity_config
from tests.simulation.checkers.observed import Observed
from tests.simulation.driver import RegentProcess
from tests.simulation.workload import UNCLEAN

if TYPE_CHECKING:
    from tests.simulation.world import World


class UncleanElections:
    """What allows them, of topics, of the cluster, and of commands."""

    def __init__(self, world: World, seen: Observed) -> None:
        self._world = world
        self._seen = seen

    def is_enabled(self, topic: str) -> bool:
        """Whether an unclean election is allowed now. A topic's own word counts most."""
        own = self._configured(paths.topic_config(topic))
        if own is None:
            own = self._configured(paths.broker_config())
        return self._world.swarm.unclean_default if own is None else own

    def _configured(self, path: str) -> bool | None:
        node = self._world.zookeeper.get(path)
        try:
            value = None if node is None else decode_entity_config(path, node.data).get(UNCLEAN)
        except MalformedZNodeError:
            return None
        return None if value is None else value == "true"

    def may_be_held(self, writer: str, tp: TopicPartition) -> bool:
        """Whether it is asked for by a command that is being carried out, or allowed, or was at
        some time while the event was being processed.
        """
        process = next((p for p in self._world.regents if p.name == writer and p.is_alive), None)
        if process is None or process.controller.active is None:
            return False
        return (
            self.is_enabled(tp.topic)
            or self._seen.configured_at.get(tp.topic, -1) >= process.event_began
            or self._seen.default_configured_at >= process.event_began
            or _asks_for_unclean_election(process, tp)
        )


def _asks_for_unclean_election(process: RegentProcess, tp: TopicPartition) -> bool:
    """Whether a command that the process is carrying out asks for it."""
    return isinstance(process.event, CommandsReceived) and any(
        isinstance(command, ElectLeaders)
        and command.election_type is ElectionType.UNCLEAN
        and (command.partitions is None or tp in command.partitions)
        for command in process.event.commands
    )
