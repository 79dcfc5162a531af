"""A controller process and what befalls it, for the tests of its life."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from regent.controller import effects
from regent.controller import events as e
from regent.controller.kafka_controller import KafkaController
from regent.model.errors import UnexpectedZooKeeperError
from regent.protocol.control_requests import UpdateMetadataResponse
from regent.zk_data.effects import Effect
from tests.unit.controller.world import World, active_of

TIMER = "reelect"


def epoch(controller: KafkaController) -> int:
    return active_of(controller).context.term.epoch


def channel_failed(controller: KafkaController, broker_id: int = 1) -> e.ChannelFailed:
    """The end of the present channel to a broker."""
    broker = active_of(controller).context.cluster.brokers[broker_id]
    return e.ChannelFailed(epoch(controller), broker_id, broker.epoch, "a test")


def denying(prefix: str, *kinds: type[Effect[Any]]) -> Callable[[Effect[object]], None]:
    """A hook for the driver: ZooKeeper refuses these effects on nodes whose path begins so."""

    def hook(effect: Effect[object]) -> None:
        if not isinstance(effect, kinds):
            return
        touched = getattr(effect, "paths", None) or [
            operation.path for operation in getattr(effect, "operations", ())
        ]
        for path in touched:
            if path.startswith(prefix):
                raise UnexpectedZooKeeperError("NOAUTH", path)

    return hook


def update_metadata_response(world: World, controller: KafkaController, code: int) -> None:
    """The answer of broker 1 to a request of this very controller."""
    context = active_of(controller).context
    broker_epoch = context.cluster.brokers[1].epoch
    response = UpdateMetadataResponse(
        1, code, controller_epoch=context.term.epoch, broker_epoch=broker_epoch
    )
    world.process(controller, e.UpdateMetadataResponseReceived((response,)))


def led_cluster() -> World:
    """Brokers 1 and 2, and a partition that is led."""
    world = World(election_backoff_ms=1_000, election_backoff_max_ms=60_000)
    world.start_broker(1, 2)
    world.create_led_topic("t", {0: (1, 2)})
    return world


def queues_up_again(world: World) -> bool:
    """Whether the place in the election among the replicas was given up by what was done last."""
    performed = [type(effect) for effect in world.driver.performed]
    world.driver.performed.clear()
    return effects.QueueUpAgain in performed
