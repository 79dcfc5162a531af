"""Client mode: what lives in its loop. One task reads the cluster, publishes it and carries out
commands, in turns: no command works on a state that is being read. What the controller is asked is
awaited beside the turns (:mod:`regent.services.open_questions`).

Watches report what has changed. ZooKeeper servers without recursive watches (before 3.6) are read
again and again instead.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from collections import deque
from collections.abc import Sequence
from typing import Final

from regent.admin.topic_admin import Chance
from regent.cluster.cache import ClusterCache
from regent.controller.commands import Command
from regent.controller.config import ControllerConfig
from regent.controller.state.cluster_state import ClusterState
from regent.model.cluster import Broker
from regent.model.errors import (
    RecursiveWatchesUnsupportedError,
    UnexpectedZooKeeperError,
    ZooKeeperError,
)
from regent.model.topic import new_topic_id
from regent.model.topic_config import BrokerFacts
from regent.observability.logs import StandardControllerLog
from regent.protocol.control_requests import ControlResponse
from regent.runtime.admin_port import AdminRequestsPort
from regent.runtime.cluster_reader import ClusterReader
from regent.runtime.collector import Collector
from regent.runtime.command_reply import is_given_up
from regent.runtime.interpreter import Interpreter
from regent.runtime.ports import Connect
from regent.runtime.restarted_parts import COLLECTION, VIEW, RestartedParts
from regent.runtime.standby_keeper import SELF_CHECK_INTERVAL_S
from regent.runtime.view_publisher import Describing, ViewPublisher
from regent.services.open_questions import OpenQuestions, Reply, Submission
from regent.steering import topic_view
from regent.steering.steering import Steering, refused
from regent.zk_data import paths
from regent.zk_data.operations import SessionState, WatchedEvent

logger = logging.getLogger(__name__)

REFRESH_PAUSE_S: Final = 0.1
"""From an event to the reading. It decides how many changes become one request."""

POLL_INTERVAL_S: Final = 5.0
"""How often everything is read where nothing is reported."""

SETTLE_INTERVAL_S: Final = 60.0
"""How often throttles are compared with what they should be, and what could not be read is read
again: no watch reports that a right was given."""

RETRY_PAUSE_S: Final = 5.0
"""After what no reconnection explains: a right that is missing, for instance."""

DEFECT_PAUSE_S: Final = 60.0
"""After an exception that nobody expects."""

_FENCE_CHECK_S: Final = 1.0
"""Without a connection: how often is looked whether the session can still be trusted."""


class ClientLoop:
    """Everything in the loop, wired together.

    Implements :class:`~regent.runtime.ports.ConnectionListener`.

    Attributes:
        steering: What is known of the cluster, and what is done with it.
        publisher: Publishes that.
        parts: What goes on after a defect.
        connections: To ZooKeeper and to the brokers.
        problem: Why the cluster cannot be followed, None if it can.

    Args:
        admin: Asks the broker that is the controller.
        poll_interval_s: See :data:`POLL_INTERVAL_S`.
        retry_pause_s: See :data:`RETRY_PAUSE_S`.
        settle_interval_s: See :data:`SETTLE_INTERVAL_S`.
        self_check_interval_s: How often what is known is compared with ZooKeeper.
    """

    def __init__(
        self,
        *,
        config: ControllerConfig,
        connect: Connect,
        admin: AdminRequestsPort,
        poll_interval_s: float = POLL_INTERVAL_S,
        retry_pause_s: float = RETRY_PAUSE_S,
        settle_interval_s: float = SETTLE_INTERVAL_S,
        self_check_interval_s: float = SELF_CHECK_INTERVAL_S,
    ) -> None:
        randomness = random.SystemRandom()
        self.steering = Steering(
            config, log=StandardControllerLog(), chance=Chance(randomness.randrange, new_topic_id)
        )
        describing = Describing(
            topic_view.partition_state, topic_view.deletion_waits_for, is_client=True
        )
        self.publisher = ViewPublisher(self.steering, describing=describing)
        self.connections = connect(self)
        self.problem: str | None = None
        self._admin = admin
        self._poll_interval_s = poll_interval_s
        self._retry_pause_s = retry_pause_s
        self._settle_interval_s = settle_interval_s
        self._self_check_interval_s = self_check_interval_s
        self.parts = RestartedParts()
        self._collector = Collector()
        self._reader = ClusterReader(
            zookeeper=self.connections.zookeeper,
            watches=self.connections.recursive_watches,
            collector=self._collector,
            new_cache=lambda: ClusterCache(ClusterState()),
        )
        self._interpreter = Interpreter(
            zookeeper=self.connections.zookeeper,
            channels=self.connections.channels,
            view=self.publisher,
            enqueue=lambda _: None,
            contend=lambda: None,
            queue_up_again=lambda: None,
            admin=admin,
        )
        self._wake = asyncio.Event()
        self._connected = asyncio.Event()
        self._submissions: deque[Submission] = deque()
        self._questions = OpenQuestions(
            self._interpreter, on_answer=self._wake.set, active=lambda: self.steering.active
        )
        self._must_look = True
        self._is_polling = False
        self._serving_changed = False
        self._is_serving = False

    async def run_until(self, stop: asyncio.Event) -> None:
        """Follow the cluster and carry out commands until ``stop`` is set."""
        stopping = asyncio.create_task(stop.wait(), name="stop")
        running = {
            stopping,
            asyncio.create_task(self._run(), name="client"),
            asyncio.create_task(self.parts.run(VIEW, self.publisher.run), name=VIEW),
            asyncio.create_task(self.connections.start(), name="session start"),
            asyncio.create_task(self.parts.run(COLLECTION, self._collect), name=COLLECTION),
        }
        try:
            while not stopping.done():
                done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            self._refuse_submissions("this process ends")
            self._interpreter.close()
            self._admin.close()
            await self.connections.close()

    async def _collect(self) -> None:
        await self._collector.collect_at_quiet_moments(lambda: not self.waiting)

    @property
    def waiting(self) -> int:
        """Submissions that wait. May be read from any thread."""
        return len(self._submissions) + len(self._questions)

    def submit(self, commands: Sequence[Command], reply: Reply) -> None:
        """Carry commands out in the next turn. To be called in the loop."""
        if self.steering.active is None:
            reply(refused(commands, self.steering.refusal or self.problem))
            return
        self._submissions.append(Submission(commands, reply))
        self._wake.set()

    def set_serving(self, is_serving: bool) -> None:
        """Resources are, or are no longer, served by this process. To be called in the loop."""
        self._is_serving, self._serving_changed = is_serving, True
        self._wake.set()

    # ConnectionListener

    def session_changed(self, state: SessionState) -> None:
        self._reader.session_changed(is_new=state is SessionState.CONNECTED)
        self._must_look = True
        if state in (SessionState.CONNECTED, SessionState.RECONNECTED):
            self._connected.set()
        else:
            self._connected.clear()
        self._wake.set()

    def watch_fired(self, watched: WatchedEvent) -> None:
        if watched.path == paths.CONTROLLER:
            self._admin.close()  # what a former controller has not answered it never will
        self._must_look = True
        self._wake.set()

    def broker_answered(self, broker: Broker, facts: BrokerFacts) -> None:
        self.steering.learn(broker.epoch, facts)
        self._wake.set()

    def protocol_version_changed(self, version: tuple[int, int], controller_epoch: int) -> None:
        active = self.steering.active
        if active is not None:
            active.context.cluster.inter_broker_protocol = version

    def channel_failed(self, broker: Broker, controller_epoch: int, reason: BaseException) -> None:
        """It only says what the broker runs; that is known of it until it is another one."""

    def responded(self, response: ControlResponse) -> None:
        """Nothing is sent that could be answered."""

    def elected(self) -> None:
        """Nobody contends."""

    def election_lost(self) -> None:
        """Nobody contends."""

    # The task

    async def _run(self) -> None:
        self.connections.recursive_watches.listen(self._wake.set)
        next_settling = time.monotonic() + self._settle_interval_s
        next_check = time.monotonic() + self._self_check_interval_s
        while True:
            await self._until_connected()
            try:
                await self._turn()
                if time.monotonic() >= next_settling:
                    await self._interpreter.drive(self.steering.settle())
                    self._reader.cache.expect_corrections()
                    next_settling = time.monotonic() + self._settle_interval_s
                if time.monotonic() >= next_check:
                    await self._check()
                    next_check = time.monotonic() + self._self_check_interval_s
                self.problem = None
            except ZooKeeperError as error:
                problem = _explained(error)
                if problem != self.problem:
                    logger.warning("The cluster cannot be followed", extra={"error": problem})
                await self._fail(problem)
                is_explained = self._reader.has_missed()  # by a lost connection
                await self._pause(REFRESH_PAUSE_S if is_explained else self._retry_pause_s)
                continue
            except Exception as error:
                logger.exception("A defect of client mode; reading everything anew later")
                self._reader.start_anew()
                await self._fail(f"a defect: {error!r}")
                await self._pause(DEFECT_PAUSE_S)
                continue
            await self._work(until=min(next_settling, next_check))

    async def _check(self) -> None:
        """Read everything anew if ZooKeeper has something else than what is known."""
        if not self._is_polling and await self._reader.check():
            self._reader.start_anew()
            self._wake.set()

    async def _until_connected(self) -> None:
        """Wait for a connection. What is known counts as long as the session may live."""
        while not self._connected.is_set():
            if self.steering.active is not None and self.connections.is_fenced():
                await self._fail("no ZooKeeper session")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_FENCE_CHECK_S):
                    await self._connected.wait()

    async def _turn(self) -> None:
        """Read what was reported, then do what was asked for, or go on with it. A server that lags
        behind reports nothing of what it has missed: it catches up before anything is done. What
        there is to do since then is for the next turn."""
        self._wake.clear()
        submissions, self._submissions = self._submissions, deque()
        is_to_act = bool(submissions) or self._serving_changed or self._questions.has_answers
        try:
            if is_to_act:
                await self._interpreter.drive(self.steering.catch_up())
            must_look, self._must_look = self._must_look, False
            await self._read()
            steering, cluster = self.steering, self._reader.cache.cluster
            active = steering.active
            if must_look or active is None or active.context.cluster is not cluster:
                await self._interpreter.drive(steering.look(cluster))
            else:
                await self._interpreter.drive(steering.follow())
            if not is_to_act:
                return
            if self._serving_changed:
                self._serving_changed = False
                await self._interpreter.drive(steering.serve(is_serving=self._is_serving))
            await self._questions.go_on()
            while submissions:
                commands, reply = submissions[0]
                if is_given_up(reply):
                    reply(refused(commands, "nobody waits for it any more"))
                    submissions.popleft()
                    continue
                await self._questions.begin(submissions[0], steering.process(commands, reply))
                submissions.popleft()
        except BaseException:
            self._submissions.extendleft(reversed(submissions))  # for whoever handles it
            raise

    async def _read(self) -> None:
        reader = self._reader
        if self._is_polling:
            await reader.read_everything()
            return
        try:
            if reader.is_current():
                await reader.catch_up()
            else:
                await reader.load()
        except RecursiveWatchesUnsupportedError as error:
            logger.warning(
                "ZooKeeper reports no changes of the cluster, which is read again and again",
                extra={"reason": str(error), "every_s": self._poll_interval_s},
            )
            self._is_polling = True
            await reader.read_everything()

    async def _work(self, *, until: float) -> None:
        """Wait for something to do, and a little longer for more of it."""
        if self._reader.cache.dirty_count:
            return
        if self._is_polling:
            until = min(until, time.monotonic() + self._poll_interval_s)
        await self._pause(max(until - time.monotonic(), 0))
        if not (self._submissions or self._questions.has_answers):
            await asyncio.sleep(REFRESH_PAUSE_S)

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()

    async def _fail(self, problem: str) -> None:
        """Nothing that is known of the cluster holds any more."""
        self.problem = problem
        self._wake.clear()
        self._must_look = True
        self._reader.doubt()
        self._refuse_submissions(problem)
        await self._interpreter.drive(self.steering.forget(None))

    def _refuse_submissions(self, why: str) -> None:
        self._questions.refuse(why)
        while self._submissions:
            commands, reply = self._submissions.popleft()
            reply(refused(commands, why))


def _explained(error: ZooKeeperError) -> str:
    return error.with_remedy if isinstance(error, UnexpectedZooKeeperError) else str(error)
