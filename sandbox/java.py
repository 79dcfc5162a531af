"""How Java programs are run here: quick to start, small, logging to standard output.

The servers live for seconds and do little, so they get the serial collector, the first compiler
tier only and a small heap. Benchmarks pass `TUNED_FOR_THROUGHPUT`.
"""

import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from sandbox.class_data import class_data_options
from sandbox.kafka_jars import KafkaJars

TUNED_FOR_QUICK_START = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")
TUNED_FOR_THROUGHPUT = ("-XX:+UseG1GC", "-Xshare:auto")

_LOG4J = """\
log4j.rootLogger={level}, console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.target=System.{stream}
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=[%d] %p %m (%c)%n
"""


def write_log_configuration(
    path: Path,
    *,
    level: str = "INFO",
    stream: str = "out",
    levels: dict[str, str] | None = None,
) -> None:
    """A log4j configuration for one stream (`out` or `err`); `levels` maps loggers to levels."""
    lines = [f"log4j.logger.{name}={value}\n" for name, value in (levels or {}).items()]
    path.write_text(_LOG4J.format(level=level, stream=stream) + "".join(lines))


def write_properties(path: Path, properties: Mapping[str, object]) -> None:
    """A file of properties, as Kafka and ZooKeeper read their configuration.

    Nothing is escaped: values must neither begin with white space nor have a backslash.
    """
    lines = [
        f"{key}={str(value).lower() if isinstance(value, bool) else value}\n"
        for key, value in properties.items()
    ]
    path.write_text("".join(lines))


def java_command(
    jars: KafkaJars,
    main_class: str,
    arguments: Iterable[str | Path] = (),
    *,
    heap_mb: int,
    log_configuration: Path,
    options: Iterable[str] = TUNED_FOR_QUICK_START,
) -> list[str]:
    """The command line of a Java program out of the jars.

    One that is tuned for a quick start takes its classes from the archive, if there is one.
    """
    chosen = tuple(options)
    starts_quickly = set(TUNED_FOR_QUICK_START) <= set(chosen)
    records = any(option.startswith("-XX:ArchiveClassesAtExit") for option in chosen)
    return [
        "java",
        f"-Xmx{heap_mb}m",
        *chosen,
        *(class_data_options(jars) if starts_quickly and not records else ()),
        "-Djava.awt.headless=true",
        "-Djava.net.preferIPv4Stack=true",
        f"-Dlog4j.configuration={log_configuration.as_uri()}",
        "-cp",
        jars.class_path,
        main_class,
        *(str(argument) for argument in arguments),
    ]


def compile_source(jars: KafkaJars, source: Path, folder: Path) -> None:
    """Compile a source file that uses the jars; its classes go into the folder.

    Raises subprocess.CalledProcessError if it cannot be compiled.
    """
    subprocess.run(["javac", "-nowarn", "-cp", jars.class_path, "-d", folder, source], check=True)


@contextmanager
def compiled_program(
    jars: KafkaJars,
    source: Path,
    arguments: Iterable[str | Path] = (),
    *,
    heap_mb: int,
    log_level: str = "ERROR",
    options: Iterable[str] = TUNED_FOR_QUICK_START,
) -> Iterator[list[str]]:
    """The command line of a program of one source file that uses the jars, as long as its classes
    are there. It logs to standard error.

    Raises subprocess.CalledProcessError if it cannot be compiled.
    """
    with tempfile.TemporaryDirectory() as folder:
        log_configuration = Path(folder) / "log4j.properties"
        write_log_configuration(log_configuration, level=log_level, stream="err")
        compile_source(jars, source, Path(folder))
        command = java_command(
            jars,
            source.stem,
            arguments,
            heap_mb=heap_mb,
            log_configuration=log_configuration,
            options=options,
        )
        at = command.index("-cp") + 1
        command[at] = f"{folder}:{command[at]}"
        yield command
