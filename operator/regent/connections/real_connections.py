"""The controller's connections to real servers: kazoo for ZooKeeper, sockets for the brokers."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping

from regent.network.controller_channel_manager import ControllerChannelManager
from regent.network.settings import ChannelSettings
from regent.runtime.ports import Connect, ConnectionListener
from regent.zookeeper.client import KazooZooKeeper
from regent.zookeeper.leader_election import LeaderElection
from regent.zookeeper.recursive_watches import RecursiveWatches
from regent.zookeeper.session import ZooKeeperSession
from regent.zookeeper.settings import ZooKeeperSettings


def real_connections(
    *,
    controller_id: int,
    zookeeper: ZooKeeperSettings,
    election_path: str,
    channels: ChannelSettings,
) -> Connect:
    """What makes the connections of a controller.

    Raises:
        ConfigurationError: If the settings cannot work.
    """
    zookeeper.validate()

    def connect(listener: ConnectionListener) -> Connections:
        return Connections(
            listener,
            controller_id=controller_id,
            zookeeper=zookeeper,
            election_path=election_path,
            channels=channels,
        )

    return connect


class Connections:
    """Implements :class:`~regent.runtime.ports.ConnectionsPort`."""

    def __init__(
        self,
        listener: ConnectionListener,
        *,
        controller_id: int,
        zookeeper: ZooKeeperSettings,
        election_path: str,
        channels: ChannelSettings,
    ) -> None:
        self._session = ZooKeeperSession(zookeeper)
        self._session.subscribe(listener.session_changed)
        self.zookeeper = KazooZooKeeper(self._session, on_watch=listener.watch_fired)
        self.recursive_watches = RecursiveWatches(self._session)
        self.channels = ControllerChannelManager(
            controller_id=controller_id,
            settings=channels,
            may_send=lambda: not self._session.is_fenced(),
            on_response=listener.responded,
            on_failure=listener.channel_failed,
            on_protocol_version=listener.protocol_version_changed,
            on_broker_facts=listener.broker_answered,
        )
        self._election = LeaderElection(
            self._session,
            path=election_path,
            identifier=f"{socket.gethostname()}/{os.getpid()}/{controller_id}",
            on_elected=listener.elected,
            on_lost=listener.election_lost,
        )
        self._is_contending = False

    def is_fenced(self) -> bool:
        return self._session.is_fenced()

    def last_contact(self) -> float:
        return self._session.last_contact

    def session_problem(self) -> str | None:
        return self._session.problem

    def election_problem(self) -> str | None:
        return self._election.problem

    def queue_sizes(self) -> Mapping[int, int]:
        return self.channels.queue_sizes()

    def channel_problems(self) -> Mapping[int, str]:
        return self.channels.problems()

    async def start(self) -> None:
        await self._session.start()

    def contend(self) -> None:
        if not self._is_contending:
            self._is_contending = True
            self._election.start()

    async def close(self) -> None:
        self.channels.close_all()
        await self.channels.wait_closed()
        if self._is_contending:
            await self._election.close()
        await self._session.close()
