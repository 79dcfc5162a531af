"""Kafka's command line tools in one Java process that stays: a call takes a fraction of a start.

A call behaves as in a process of its own: `Tools.java` loads the tool's classes anew, catches its
exit status and runs its shutdown hooks.
"""

import base64
import functools
import os
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path

from sandbox.caching import cached, content_hash
from sandbox.guard import guard
from sandbox.java import compile_source, java_command, write_log_configuration
from sandbox.kafka_jars import KafkaJars, kafka_jars
from sandbox.process import Outcome, spawn

_SOURCE = Path(__file__).with_name("Tools.java")
_LOG_CONFIGURATION = "log4j.properties"
_HEAP_MB = 256
_EMPTY = "-"


class ResidentTools:
    """The tools of one Kafka version. Get the one of this process from `resident_tools`."""

    def __init__(self, jars: KafkaJars) -> None:
        self._jars = jars
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def run(
        self, main_class: str, arguments: Sequence[str | Path], *, stdin: str, timeout_s: float
    ) -> Outcome | None:
        """Run the tool of a class to its end; None if another thread's tool is running.

        Raises:
            TimeoutError: the tool did not end in time; the process was killed.
            RuntimeError: the process ended by itself.
        """
        if not self._lock.acquire(blocking=False):
            return None
        try:
            return self._run([stdin, main_class, *map(str, arguments)], timeout_s)
        finally:
            self._lock.release()

    def close(self) -> None:
        """Kill the process, if there is one."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.communicate()
        guard().forget_process(process.pid)

    def _run(self, words: Sequence[str], timeout_s: float) -> Outcome:
        process = self._process = self._process or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        timed_out = threading.Event()

        def end() -> None:
            timed_out.set()
            process.kill()

        timer = threading.Timer(timeout_s, end)
        timer.start()
        try:
            process.stdin.write(" ".join(map(_encoded, words)).encode() + b"\n")
            answer = process.stdout.readline().decode()
        except BrokenPipeError:
            answer = ""
        finally:
            timer.cancel()
            timer.join()
        if not answer.endswith(".\n"):
            self.close()
            if timed_out.is_set():
                raise TimeoutError(f"{words[1]} did not end within {timeout_s:g} s")
            raise RuntimeError(f"the process of Kafka's tools ended while it ran {words[1]}")
        status, stdout, stderr = answer.removesuffix(".\n").split(" ")
        return Outcome(_decoded(stdout), _decoded(stderr), int(status))

    def _start(self) -> subprocess.Popen[bytes]:
        program = _program(self._jars)
        command = java_command(
            self._jars,
            _SOURCE.stem,
            heap_mb=_HEAP_MB,
            log_configuration=program / _LOG_CONFIGURATION,
        )
        # at the end: an archive of classes is valid for the jars that the class path begins with
        command[command.index("-cp") + 1] += f":{program}"
        return spawn(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


def _program(jars: KafkaJars) -> Path:
    """The folder with the compiled `Tools.java` and the configuration of its log."""

    def make(folder: Path) -> None:
        compile_source(jars, _SOURCE, folder)
        write_log_configuration(folder / _LOG_CONFIGURATION, level="WARN", stream="err")

    return cached(f"tools/{content_hash(_SOURCE.read_bytes(), jars.class_path)}", make)


@functools.cache
def resident_tools(version: str) -> ResidentTools:
    """The resident tools of this process. They end with it."""
    return ResidentTools(kafka_jars(version))


os.register_at_fork(after_in_child=resident_tools.cache_clear)


def _encoded(word: str) -> str:
    return base64.b64encode(word.encode()).decode() or _EMPTY


def _decoded(word: str) -> str:
    return "" if word == _EMPTY else base64.b64decode(word).decode(errors="replace")
