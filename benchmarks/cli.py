"""The command line: `python -m benchmarks list` and one command for each benchmark."""

import dataclasses
import json
import sys
from collections.abc import Callable
from pathlib import Path

import click
from rich import box
from rich.console import Console
from rich.table import Table as RichTable

from benchmarks import machine
from benchmarks.benchmark import SIDES, Benchmark, Options, Result
from benchmarks.errors import BenchmarkError
from benchmarks.registry import BENCHMARKS
from sandbox.errors import SandboxError

_WIDTH = 118


@click.group(help="Measures Regent beside Kafka's own controller.")
def main() -> None:
    """Commands are added below."""


@main.command(name="list", help="Name the benchmarks.")
def list_benchmarks() -> None:
    """One line for each."""
    for benchmark in BENCHMARKS.values():
        click.echo(f"{benchmark.name:<20} {benchmark.summary}")


def _command(benchmark: Benchmark) -> click.Command:
    def run(
        *,
        size: int,
        rounds: int,
        samples: int,
        only: str | None,
        timeout: float,
        idle_timeout: float,
        json_path: str,
    ) -> None:
        sides = (only,) if only else SIDES
        options = Options(size, rounds, samples, sides, timeout, idle_timeout)
        sys.exit(_run(benchmark, options, Path(json_path) if json_path else None))

    decorators: list[Callable[[Callable[..., None]], Callable[..., None]]] = [
        click.option(
            "--size",
            type=click.IntRange(min=1),
            default=benchmark.default_size,
            show_default=True,
            help=f"How many {benchmark.unit}.",
        ),
        click.option(
            "--rounds",
            type=click.IntRange(min=1),
            default=benchmark.default_rounds,
            show_default=True,
            help="How often the two sides take turns.",
        ),
        click.option(
            "--samples",
            type=click.IntRange(min=1),
            default=benchmark.default_samples,
            show_default=True,
            help="Counted measurements of each side in each round.",
        ),
        click.option("--only", type=click.Choice(SIDES), help="Measure one side; no comparison."),
        click.option(
            "--timeout",
            type=click.FloatRange(min=1),
            default=300.0,
            show_default=True,
            help="Seconds that one measurement may take.",
        ),
        click.option(
            "--idle-timeout",
            type=click.FloatRange(min=0),
            default=10.0,
            show_default=True,
            help="Seconds to wait, before each measurement, for a machine that does nothing else.",
        ),
        click.option("--json", "json_path", default="", help="Write all figures to this file."),
    ]
    for decorate in reversed(decorators):
        run = decorate(run)
    return click.command(name=benchmark.name, help=benchmark.summary)(run)


def _run(benchmark: Benchmark, options: Options, json_path: Path | None) -> int:
    """Run a benchmark and print what came out; returns the exit code."""
    console = Console(width=_WIDTH, highlight=False)
    facts = machine.facts()
    try:
        result = benchmark.run(options, console)
    except (BenchmarkError, SandboxError) as error:
        console.print(f"{benchmark.name}: not completed: {error}", markup=False)
        return 1
    console.print(", ".join(f"{name}: {value}" for name, value in facts.items()), markup=False)
    _print(console, result)
    if json_path is not None:
        json_path.write_text(json.dumps(_document(benchmark, options, facts, result), indent=2))
    if result.headline is not None:
        console.print(f"{benchmark.name}: {result.headline}")
    elif result.ratio is None:
        console.print(f"{benchmark.name}: only {next(iter(result.seconds))} was measured")
    else:
        console.print(f"{benchmark.name}: {result.ratio:.1f} times {benchmark.peer}'s speed")
    return 0


def _print(console: Console, result: Result) -> None:
    for table in result.tables:
        shown = RichTable(box=box.SIMPLE_HEAD)
        for number, column in enumerate(table.columns):
            shown.add_column(column, justify="right" if number else "left")
        for row in table.rows:
            shown.add_row(*row)
        console.print(f"\n{table.title}", markup=False)
        console.print(shown)
    for note in result.notes:
        console.print(note, markup=False)


def _document(
    benchmark: Benchmark, options: Options, facts: dict[str, str], result: Result
) -> dict[str, object]:
    return {
        "benchmark": benchmark.name,
        "options": dataclasses.asdict(options),
        "machine": facts,
        "seconds": {side: list(seconds) for side, seconds in result.seconds.items()},
        "median": {side: result.median(side) for side in result.seconds},
        "ratio": result.ratio,
        "details": result.details,
    }


for _benchmark in BENCHMARKS.values():
    main.add_command(_command(_benchmark))
