"""Events and effects as text for the trace."""

from __future__ import annotations

from regent.controller import events as e
from regent.simulation.zookeeper_effects import ZooKeeperEffect
from regent.zk_data import effects as zk_effects


def describe_event(event: e.ControllerEvent) -> str:
    """The event with what it is about."""
    if isinstance(event, e.CommandsReceived):
        return f"{event.commands}"
    name = type(event).__name__
    if isinstance(event, e.ControlledShutdownReceived):
        return f"{name} {[request.commands for request in event.requests]}"
    answers = getattr(event, "responses", None)
    if answers is not None:
        return name + "".join(f" broker-{a.broker_id} {a.error_code}" for a in answers)
    return name + "".join(
        f" {getattr(event, f)}"
        for f in ("broker_id", "broker_ids", "topics", "version")
        if hasattr(event, f)
    )


def describe_effect(effect: ZooKeeperEffect) -> str:
    """The effect with its paths and expected versions."""
    name = type(effect).__name__
    match effect:
        case zk_effects.Multi() | zk_effects.Write():
            operations = ", ".join(
                f"{type(op).__name__} {op.path}"
                + (f"@{op.version}" if hasattr(op, "version") else "")
                for op in effect.operations
            )
            return f"{name} {operations}"
        case _:
            return f"{name}{' watch' if effect.watch else ''} {' '.join(effect.paths)}"
