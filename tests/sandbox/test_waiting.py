"""A failed wait must tell what was awaited, what was seen last, and what the logs say."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

import pytest

from sandbox.errors import ProcessDiedError, WaitTimeoutError
from sandbox.waiting import wait_until, wait_until_async


@dataclass
class Program:
    """A watched program whose life the test decides on."""

    name: str
    log_path: Path
    is_running: bool = True


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "server.log"
    path.write_text("".join(f"line {number}\n" for number in range(100)))
    return path


def test_a_timeout_tells_what_was_awaited_seen_and_logged(log: Path) -> None:
    with pytest.raises(WaitTimeoutError) as failure:
        wait_until(
            lambda: [1, 2, 3],
            until=lambda value: value == [1, 2],
            timeout_s=0.05,
            describe="broker 3 to leave the ISR",
            logs=[log],
        )
    message = str(failure.value)
    assert "timed out after 0.05 s waiting for broker 3 to leave the ISR" in message
    assert "last observed: value [1, 2, 3]" in message
    assert f"--- tail of {log} ---" in message
    assert "line 99" in message
    assert "line 10\n" not in message


def test_a_timeout_tells_the_last_exception_and_chains_it() -> None:
    def refuse() -> bool:
        raise ConnectionRefusedError("nobody listens")

    with pytest.raises(WaitTimeoutError) as failure:
        wait_until(refuse, timeout_s=0.05, describe="an answer")
    assert "last observed: exception ConnectionRefusedError: nobody listens" in str(failure.value)
    assert isinstance(failure.value.__cause__, ConnectionRefusedError)


def test_an_exception_that_is_not_to_be_retried_passes_at_once() -> None:
    def broken() -> bool:
        raise KeyError("typo")

    with pytest.raises(KeyError):
        wait_until(broken, timeout_s=60, describe="nothing", retry_on=(OSError,))


def test_a_watched_program_that_died_fails_the_wait_at_once(log: Path) -> None:
    program = Program("kafka-broker-1", log)

    def condition() -> bool:
        program.is_running = False
        return False

    with pytest.raises(ProcessDiedError) as failure:
        wait_until(condition, timeout_s=60, describe="readiness", watch=[program])
    assert "kafka-broker-1 died while waiting for readiness" in str(failure.value)
    assert "line 99" in str(failure.value)


async def test_the_async_form_cuts_off_a_condition_that_hangs() -> None:
    async def hang() -> bool:
        await asyncio.sleep(60)
        return True

    with pytest.raises(WaitTimeoutError, match="waiting for an answer"):
        await wait_until_async(hang, timeout_s=0.05, describe="an answer")
