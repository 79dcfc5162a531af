"""Steps as the command line has them."""

from __future__ import annotations

import pytest

from regent.model.errors import ConfigurationError
from regent.simulation.scenario import (
    STEPS,
    AddBroker,
    Kill,
    KillRack,
    Restart,
    Start,
    Step,
    Stop,
    Unclean,
    Wait,
    parse_step,
)

WORDS = [
    ("kill", "3", Kill((3,)), "kill 3"),
    ("kill", "3, 1", Kill((3, 1)), "kill 3,1"),
    ("kill_rack", "b", KillRack("b"), "kill rack b"),
    ("stop", "1,2", Stop((1, 2)), "stop 1,2"),
    ("start", "1", Start((1,)), "start 1"),
    ("restart", "2,1", Restart((2, 1)), "restart 2,1"),
    ("add_broker", "7=rack-b", AddBroker(7, "rack-b"), "add broker 7 in rack rack-b"),
    ("add_broker", "7", AddBroker(7, None), "add broker 7"),
    ("unclean", "on", Unclean(True), "unclean on"),
    ("unclean", "off", Unclean(False), "unclean off"),
    ("wait", "600", Wait(600), "wait 600 s"),
]


@pytest.mark.parametrize(("name", "value", "step", "words"), WORDS)
def test_a_step(name: str, value: str, step: Step, words: str) -> None:
    assert parse_step(name, value) == step
    assert type(parse_step(name, value)) is type(step)
    assert str(step) == words


def test_every_step_is_tested() -> None:
    assert {name for name, *_ in WORDS} == set(STEPS)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("kill", "a", "'a' is no list of brokers"),
        ("kill", "", "'' is no list of brokers"),
        ("restart", "1,2,1", "names broker 1 twice"),
        ("kill_rack", "", "'' is no rack"),
        ("add_broker", "x=a", "'x=a' is not ID=RACK"),
        ("add_broker", "7=", "'7=' is not ID=RACK"),
        ("unclean", "yes", "'yes' is neither on nor off"),
        ("wait", "1m", "'1m' is no number of seconds"),
    ],
)
def test_a_value_that_is_none(name: str, value: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        parse_step(name, value)
