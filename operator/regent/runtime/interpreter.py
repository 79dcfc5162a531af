"""Performs the effects of the controller core: here its decisions meet the world."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

from regent.controller import effects as fx
from regent.controller.events import ControllerEvent
from regent.runtime.admin_port import AdminRequestsPort
from regent.runtime.ports import BrokerChannelsPort, StandbyPort, ViewPort, ZooKeeperPort
from regent.runtime.reading_ahead import read_ahead
from regent.zk_data.effects import Effect, Exists, Multi, ReadChildren, ReadData, Write
from regent.zk_data.operations import ZNode

Process = Coroutine[Effect[Any], Any, None]
"""A coroutine of the core."""


class Interpreter:
    """Drives one coroutine of the core at a time.

    Errors of an effect are thrown into the coroutine at its ``await``; deciding what becomes of the
    controller then is the core's business.
    """

    def __init__(
        self,
        *,
        zookeeper: ZooKeeperPort,
        channels: BrokerChannelsPort,
        view: ViewPort,
        enqueue: Callable[[ControllerEvent], None],
        contend: Callable[[], None],
        queue_up_again: Callable[[], None],
        standby: StandbyPort | None = None,
        admin: AdminRequestsPort | None = None,
        still_absent: Callable[[fx.StillAbsent], tuple[int, ...]] | None = None,
    ) -> None:
        self._zookeeper = zookeeper
        self._channels = channels
        self._view = view
        self._standby = standby
        self._enqueue = enqueue
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._perform: dict[type[Effect[Any]], Callable[[Any], Awaitable[Any]]] = {
            ReadData: self._read,
            ReadChildren: lambda x: zookeeper.get_children(x.paths, watch=x.watch),
            Exists: lambda x: zookeeper.exists(x.paths, watch=x.watch),
            Multi: lambda x: zookeeper.multi(x.operations),
            Write: lambda x: zookeeper.write(x.operations, guard=x.guard, divides=x.divides),
            fx.InterBrokerProtocol: lambda x: channels.inter_broker_protocol(),
            fx.SendRequests: self._send,
            fx.GiveWay: self._give_way,
            fx.ReadStandby: lambda x: _nothing() if standby is None else standby.read(),
        }
        if admin is not None:
            self._perform[fx.AskReassignments] = lambda x: admin.alter_partition_reassignments(
                x.broker, x.targets, x.found
            )
            self._perform[fx.AskElections] = lambda x: admin.elect_leaders(
                x.broker, x.election_type, x.partitions
            )
        self._at_once: dict[type[Effect[Any]], Callable[[Any], Any]] = {
            fx.UpdateChannels: lambda x: channels.update(
                opened=x.opened,
                closed=x.closed,
                controller_epoch=x.controller_epoch,
                epoch_zk_version=x.epoch_zk_version,
            ),
            fx.ReaddressChannels: lambda x: channels.readdress(x.brokers),
            fx.ReportedFacts: lambda x: channels.facts(x.brokers),
            fx.SilentBrokers: lambda x: channels.silent(),
            fx.Resigned: self._resigned,
            fx.ArmTimer: self._arm_timer,
            fx.CancelTimer: lambda x: self._cancel_timer(x.name),
            fx.Contend: lambda x: contend(),
            fx.QueueUpAgain: lambda x: queue_up_again(),
            fx.Enqueue: lambda x: enqueue(x.event),
            fx.Respond: _respond,
            fx.PublishView: lambda x: view.publish(x.topics),
            fx.OwnSession: lambda x: zookeeper.session_id,
            fx.CurrentTime: lambda x: time.time_ns() // 1_000_000,
        }
        if still_absent is not None:
            self._at_once[fx.StillAbsent] = still_absent

    async def drive(self, process: Process) -> None:
        """Run a coroutine of the core to its end."""
        await self.advance(process)

    async def advance(
        self,
        process: Process,
        result: Any = None,
        error: Exception | None = None,
        *,
        until: tuple[type[Effect[Any]], ...] = (),
    ) -> Effect[Any] | None:
        """Run a coroutine of the core until it awaits an effect of these kinds, which is returned;
        None: it has ended.

        Args:
            result: What the effect has led to that it awaits; None at the beginning.
            error: What it has failed with instead.
        """
        while True:
            try:
                effect = process.send(result) if error is None else process.throw(error)
            except StopIteration:
                return None
            if until and isinstance(effect, until):
                return effect
            result, error = None, None
            immediate = self._at_once.get(type(effect))
            try:
                if immediate is not None:
                    result = immediate(effect)
                else:
                    result = await self._perform[type(effect)](effect)
            except Exception as caught:  # noqa: BLE001 - the core decides what an error means
                error = caught

    async def perform(self, effect: Effect[Any]) -> Any:
        """What an effect leads to that takes time."""
        return await self._perform[type(effect)](effect)

    def close(self) -> None:
        """Disarm all timers."""
        for name in list(self._timers):
            self._cancel_timer(name)

    async def _read(self, effect: ReadData) -> Sequence[ZNode | None]:
        if effect.take is None:
            return await self._zookeeper.get_data(effect.paths, watch=effect.watch)
        await read_ahead(self._zookeeper, effect.paths, effect.take)
        return ()

    async def _send(self, effect: fx.SendRequests) -> None:
        self._channels.send(effect.requests)
        # Let the channels write before the core goes on computing: until a broker knows the
        # new controller epoch it still obeys the old controller.
        await asyncio.sleep(0)

    async def _give_way(self, _: fx.GiveWay) -> None:
        await asyncio.sleep(0)

    def _arm_timer(self, effect: fx.ArmTimer) -> None:
        self._cancel_timer(effect.name)

        def fire() -> None:
            self._timers.pop(effect.name, None)
            self._enqueue(effect.event)

        loop = asyncio.get_running_loop()
        self._timers[effect.name] = loop.call_later(effect.after_ms / 1000, fire)

    def _cancel_timer(self, name: str) -> None:
        handle = self._timers.pop(name, None)
        if handle is not None:
            handle.cancel()

    def _resigned(self, _: fx.Resigned) -> None:
        self.close()
        self._channels.close_all()
        if self._standby is not None:
            self._standby.resigned()
        self._view.reset()


async def _nothing() -> None:
    """What a process without a standby's cache reads from it."""


def _respond(effect: fx.Respond) -> None:
    effect.reply_to(effect.answer)
