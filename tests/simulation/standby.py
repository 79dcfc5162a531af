"""The standby's cache of a simulated process: the reader of the runtime, one reading at a time.

Each of its readings is an effect, so that anything may happen before the answer: a lost connection,
an election, a take-over.
"""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from regent.controller.state.standby_copy import StandbyCopy
from regent.model.errors import RegentError, SessionExpiredError
from regent.runtime.collector import Collector
from regent.runtime.standby_reader import StandbyReader
from regent.simulation.zookeeper import Event, InMemoryClient
from regent.zk_data import effects as zk_effects
from regent.zk_data.operations import Operation, SessionState, WatchedEventType, ZNode
from tests.simulation.checkers.standby import check_copy
from tests.simulation.zookeeper_ports import InMemoryRecursiveWatches

if TYPE_CHECKING:
    from tests.simulation.world import World


class _ReadingPort:
    """A ``ZooKeeperPort`` whose readings are effects, for whoever drives the coroutine. The cache
    does nothing else."""

    def __init__(self, client: InMemoryClient) -> None:
        self._client = client

    @property
    def session_id(self) -> int:
        return self._client.session_id

    async def get_data(
        self, paths: Sequence[str], *, watch: bool = False
    ) -> Sequence[ZNode | None]:
        return await zk_effects.ReadData(paths, watch)

    async def get_children(
        self, paths: Sequence[str], *, watch: bool = False
    ) -> Sequence[tuple[str, ...] | None]:
        return await zk_effects.ReadChildren(paths, watch)

    async def exists(self, paths: Sequence[str], *, watch: bool = False) -> NoReturn:
        raise AssertionError("the cache asks for no existence")

    async def multi(self, operations: Sequence[Operation]) -> NoReturn:
        raise AssertionError("the cache writes nothing")

    async def write(self, operations: Sequence[Operation], **_: object) -> NoReturn:
        raise AssertionError("the cache writes nothing")


class _NoCollector(Collector):
    """The collector of this process is that of many worlds."""

    def freeze(self) -> None:
        pass


class SimulatedStandby:
    """Loads the cache and reads what is dirty, whenever it is its turn.

    A take-over and the cache's own readings do not take place at the same time, as in
    :class:`~regent.runtime.standby_reader.StandbyReader`, where a lock sees to that.
    """

    def __init__(self, world: World, name: str, client: InMemoryClient) -> None:
        self._world = world
        self._name = name
        self._client = client
        self._watches = InMemoryRecursiveWatches(client)
        self._watches.listen(self._wake)
        self._reader = StandbyReader(
            zookeeper=_ReadingPort(client), watches=self._watches, collector=_NoCollector()
        )
        self._is_woken = False
        self._own: Coroutine[zk_effects.Effect[Any], Any, object] | None = None
        self._pending: zk_effects.ReadData | zk_effects.ReadChildren | None = None
        self._session_of_call = 0
        self._is_taken_over = False
        self._touched: dict[str, None] = {}
        client.on_event(self._observe)
        client.on_touched(self._note)

    @property
    def is_in_the_way(self) -> bool:
        """Whether a reading is under way that a take-over waits for."""
        return self._own is not None and self._reader.is_current()

    def act(self) -> bool:
        """Begin to load or to read what is dirty, or get one answer. Whether there was anything."""
        if self._is_taken_over or not self._client.is_connected:
            return False
        if self._own is not None:
            self._get_answer()
            return True
        if not self._reader.is_current():
            self._begin(self._reader.load())
            return True
        if self._is_woken or self._reader.cache.dirty_count:
            self._is_woken = False
            self._begin(self._reader.refresh())
            return True
        self._reader.prepare(self._world.protocol)
        return False

    def resigned(self) -> None:
        """The process of this cache is not the controller any more."""
        self._reader.resigned()

    async def read(self) -> StandbyCopy | None:
        """What the reader gives a take-over, after a comparison with the truth."""
        self._is_taken_over = True
        self._touched.clear()
        try:
            copy = await self._reader.read()
        finally:
            self._is_taken_over = False
        found = "nothing" if copy is None else f"{copy.cluster.partition_count} partitions"
        self._world.trace.line(self._name, "  standby has", found)
        if copy is not None:
            check_copy(self._world, self._name, copy, changed_since=self._touched)
        return copy

    def _begin(self, coroutine: Coroutine[zk_effects.Effect[Any], Any, object]) -> None:
        self._own = coroutine
        self._resume()

    def _get_answer(self) -> None:
        effect = self._pending
        assert effect is not None
        if self._session_of_call != self._client.session_id:
            self._resume(error=SessionExpiredError("the session is gone"))
        elif isinstance(effect, zk_effects.ReadData):
            self._resume(self._client.get_data(effect.paths))
        else:
            self._resume(self._client.get_children(effect.paths))

    def _resume(self, result: Any = None, error: RegentError | None = None) -> None:
        assert self._own is not None
        try:
            effect = self._own.send(result) if error is None else self._own.throw(error)
        except StopIteration:
            self._own = self._pending = None
            return
        except SessionExpiredError:
            self._own = self._pending = None
            return
        assert isinstance(effect, zk_effects.ReadData | zk_effects.ReadChildren)
        self._pending = effect
        self._session_of_call = self._client.session_id

    def _observe(self, event: Event) -> None:
        if isinstance(event, SessionState):
            self._reader.session_changed(is_new=event is SessionState.CONNECTED)

    def _note(self, _: WatchedEventType, path: str) -> None:
        """What happens while a take-over reads, it may have or not."""
        self._touched[path] = None

    def _wake(self) -> None:
        self._is_woken = True
