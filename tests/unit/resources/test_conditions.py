from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

from regent.admin.commands import Reason
from regent.resources.conditions import (
    MAX_MESSAGE_LENGTH,
    Condition,
    ConditionReason,
    ConditionStatus,
    ConditionType,
    Verdict,
    enumerate_some,
    find_condition,
    rfc3339,
    update_conditions,
)

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
DOCS = Path(__file__).parents[3] / "docs"
PAGES = ("kafkatopic.md", "partition-reassignment.md", "broker-drain.md")


def _verdict(status: ConditionStatus, message: str = "so it is") -> Verdict:
    return Verdict(ConditionType.READY, status, ConditionReason.AS_DECLARED, message)


def _update(
    previous: tuple[Condition, ...], verdict: Verdict, *, generation: int = 1, now: datetime = NOON
) -> tuple[Condition, ...]:
    return update_conditions(previous, (verdict,), generation=generation, now=now)


def test_the_first_condition() -> None:
    (condition,) = _update((), _verdict(ConditionStatus.TRUE), generation=4)
    assert condition.to_api() == {
        "type": "Ready",
        "status": "True",
        "observedGeneration": 4,
        "lastTransitionTime": "2026-01-01T12:00:00Z",
        "reason": "AsDeclared",
        "message": "so it is",
    }


def test_only_another_status_is_a_transition() -> None:
    first = _update((), _verdict(ConditionStatus.TRUE))
    later = NOON + timedelta(hours=1)
    same = _update(first, _verdict(ConditionStatus.TRUE, "still"), generation=2, now=later)
    assert same[0].last_transition_time == first[0].last_transition_time
    assert (same[0].message, same[0].observed_generation) == ("still", 2)
    other = _update(same, _verdict(ConditionStatus.FALSE), now=later)
    assert other[0].last_transition_time == "2026-01-01T13:00:00Z"


def test_conditions_that_nobody_speaks_of_any_more_go() -> None:
    old = _update((), _verdict(ConditionStatus.TRUE))
    assert update_conditions(old, (), generation=1, now=NOON) == ()
    assert find_condition(old, ConditionType.READY) is old[0]
    assert find_condition(old, ConditionType.STALLED) is None


def test_messages_are_bounded() -> None:
    (condition,) = _update((), _verdict(ConditionStatus.TRUE, "x" * 5000))
    assert len(condition.message) == MAX_MESSAGE_LENGTH
    assert condition.message.endswith("…")


def test_what_does_not_fit_into_a_message_is_counted() -> None:
    assert enumerate_some(["a", "b"], limit=2) == "a; b"
    assert enumerate_some(["a", "b", "c", "d"], limit=2) == "a; b; and 2 more"


def test_times_are_utc_and_survive_the_round_trip() -> None:
    moment = datetime(2026, 1, 1, 14, tzinfo=timezone(timedelta(hours=2)))
    assert rfc3339(moment) == "2026-01-01T12:00:00Z"
    assert datetime.fromisoformat(rfc3339(moment)) == NOON


def test_every_refusal_of_the_controller_is_a_reason() -> None:
    assert {reason.value for reason in Reason} <= {reason.value for reason in ConditionReason}


def test_reasons_are_camel_case_and_documented() -> None:
    for reason in ConditionReason:
        assert re.fullmatch(r"([A-Z][a-z]+)+|ZooKeeperUnavailable", reason)
        assert reason.documentation.endswith(".")


def test_the_documentation_lists_exactly_the_reasons() -> None:
    text = "".join((DOCS / page).read_text() for page in PAGES)
    listed = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|$", text, flags=re.MULTILINE))
    expected = {reason.value: reason.documentation for reason in ConditionReason}
    assert {name: text for name, text in listed.items() if name in expected} == expected
