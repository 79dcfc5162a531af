"""The controller's connections to real servers: kazoo for ZooKeeper, sockets for the brokers."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from typing import Final

from regent.connections.sending_right import SendingRight
from regent.model.partition import TopicPartition
from regent.network.controller_channel_manager import ControllerChannelManager
from regent.network.settings import ChannelSettings
from regent.replicas.suspicion import SuspicionSettings
from regent.runtime.ports import Connect, ConnectionListener
from regent.zookeeper.client import KazooZooKeeper
from regent.zookeeper.leader_election import Identity, LeaderElection
from regent.zookeeper.recursive_watches import RecursiveWatches
from regent.zookeeper.session import ZooKeeperSession
from regent.zookeeper.settings import ZooKeeperSettings

DEFAULT_PAUSE_S: Final = SuspicionSettings().own_pause_s
"""As where replicas suspect each other with the settings' defaults."""


def real_connections(
    *,
    controller_id: int,
    zookeeper: ZooKeeperSettings,
    election_path: str,
    channels: ChannelSettings,
    pause_s: float = DEFAULT_PAUSE_S,
) -> Connect:
    """What makes the connections of a controller.

    Args:
        controller_id: Under which it holds ``/controller``.
        zookeeper: How ZooKeeper is reached.
        election_path: Where the replicas elect one among themselves.
        channels: How brokers are reached.
        pause_s: If this process has slept for longer, it sends nothing before it has made sure that
            it is still the controller.

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
            pause_s=pause_s,
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
        pause_s: float,
    ) -> None:
        self._session = ZooKeeperSession(zookeeper)
        self._session.subscribe(listener.session_changed)
        self.zookeeper = KazooZooKeeper(self._session, on_watch=listener.watch_fired)
        self.recursive_watches = RecursiveWatches(self._session)
        self._right = SendingRight(
            self.zookeeper, is_fenced=self._session.is_fenced, pause_s=pause_s
        )
        self.channels = ControllerChannelManager(
            controller_id=controller_id,
            settings=channels,
            may_send=self._right.may_send,
            wait_to_send=self._right.wait,
            on_term=self._right.set_term,
            on_response=listener.responded,
            on_failure=listener.channel_failed,
            on_protocol_version=listener.protocol_version_changed,
            on_broker_facts=listener.broker_answered,
        )
        self._election = LeaderElection(
            self._session,
            path=election_path,
            identifier=str(Identity(socket.gethostname(), os.getpid(), controller_id)),
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

    def defect(self) -> str | None:
        return self._session.defect() or self._election.defect()

    def queue_sizes(self) -> Mapping[int, int]:
        return self.channels.queue_sizes()

    def channel_problems(self) -> Mapping[int, str]:
        return self.channels.problems()

    def uninformed(self) -> Mapping[int, frozenset[TopicPartition]]:
        return self.channels.uninformed()

    async def start(self) -> None:
        self._right.start()
        await self._session.start()

    def contend(self) -> None:
        if not self._is_contending:
            self._is_contending = True
            self._election.start()

    def queue_up_again(self) -> None:
        self._election.resign()

    async def close(self) -> None:
        self.channels.close_all()
        await self.channels.wait_closed()
        await self._right.close()
        if self._is_contending:
            await self._election.close()
        await self._session.close()
