"""The interpreter performs effects and hands results and errors to the core."""

from __future__ import annotations

from typing import Any

from regent.controller import effects as fx
from regent.controller import events as e
from regent.model.errors import ControllerMovedError
from regent.zk_data import effects as zk_effects
from regent.zk_data import paths
from regent.zk_data.operations import Check, Create, SetData, Written, ZkError
from tests.unit.runtime.worlds import Process


async def run(process: Process, coroutine: Any) -> Any:
    """Drive a coroutine of effects; returns its result."""
    results: list[Any] = []

    async def keep() -> None:
        results.append(await coroutine)

    await process.interpreter.drive(keep())
    return results[0]


async def test_reads_and_writes_reach_zookeeper() -> None:
    process = Process()
    process.outsider.multi([Create(paths.CONTROLLER_EPOCH, b"1")])
    guard = Check(paths.CONTROLLER_EPOCH, 0)

    async def scenario() -> tuple[Any, ...]:
        written = await zk_effects.Write([Create("/a", b"x"), Create("/a", b"y")], guard=guard)
        (node,) = await zk_effects.ReadData(["/a"])
        (children,) = await zk_effects.ReadChildren(["/brokers"])
        exists = await zk_effects.Exists(["/a", "/b"])
        multi = await zk_effects.Multi([SetData("/a", b"z", 7)])
        return written, node, children, exists, multi

    written, node, children, exists, multi = await run(process, scenario())
    assert written == [Written(0, "/a"), ZkError.NODE_EXISTS]
    assert node is not None
    assert node.data == b"x"
    assert children == ("ids", "seqid", "topics")
    assert list(exists) == [True, False]
    assert list(multi) == [ZkError.BAD_VERSION]


async def test_the_core_learns_which_session_is_its_own() -> None:
    process = Process()

    async def scenario() -> tuple[Any, ...]:
        await zk_effects.Multi([Create(paths.CONTROLLER, ephemeral=True)])
        return await zk_effects.ReadData([paths.CONTROLLER]), await fx.OwnSession()

    (node,), own = await run(process, scenario())
    assert own == node.ephemeral_owner != 0


async def test_an_error_is_thrown_into_the_core_at_its_await() -> None:
    process = Process()
    process.outsider.multi([Create(paths.CONTROLLER_EPOCH, b"1")])

    async def scenario() -> str:
        try:
            await zk_effects.Write([Create("/a")], guard=Check(paths.CONTROLLER_EPOCH, 5))
        except ControllerMovedError:
            return "moved"
        return "written"

    assert await run(process, scenario()) == "moved"
    assert process.server.get("/a") is None


async def test_a_timer_of_the_same_name_replaces_and_cancelling_disarms() -> None:
    process = Process()

    async def scenario() -> None:
        await fx.ArmTimer("t", 0, e.Startup())
        await fx.ArmTimer("t", 0, e.Reelect())
        await fx.ArmTimer("other", 0, e.Expire())
        await fx.CancelTimer("other")
        await fx.CancelTimer("never armed")
        await fx.ArmTimer("last", 1, e.ControllerChange())

    await run(process, scenario())
    await process.until(e.ControllerChange())
    assert process.events == [e.Reelect(), e.ControllerChange()]


async def test_resigning_closes_channels_disarms_timers_and_empties_the_view() -> None:
    process = Process()
    process.add_broker(1)
    await process.interpreter.drive(process.controller.process(e.Eligible()))
    assert set(process.channels.open) == {1}

    async def scenario() -> None:
        await fx.ArmTimer("t", 0, e.Reelect())
        await fx.Resigned()
        await fx.ArmTimer("later", 1, e.Startup())

    await run(process, scenario())
    assert process.channels.open == {}
    assert process.view.resets == 1
    await process.until(e.Startup())
    assert process.events == [e.Startup()]


async def test_the_standby_learns_of_a_resignation() -> None:
    resignations: list[str] = []

    class Standby:
        async def read(self) -> None:
            """There is no copy."""

        def resigned(self) -> None:
            resignations.append("resigned")

    process = Process(standby=Standby())

    async def scenario() -> None:
        assert await fx.ReadStandby() is None
        await fx.Resigned()

    await run(process, scenario())
    assert resignations == ["resigned"]
