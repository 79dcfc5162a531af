"""``regent simulate``: steps, in the order in which they stand, and conditions."""

from __future__ import annotations

import functools
import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from regent.cli.options import json_option, print_text
from regent.files.small_files import UnusableFileError, require_end
from regent.model.errors import ConfigurationError
from regent.planning.snapshot import Snapshot
from regent.planning.snapshot_reading import decode_snapshot
from regent.simulation.conditions import ELECTIONS_PER_S, Conditions
from regent.simulation.scenario import STEPS, Step, parse_step
from regent_rebalance.cli_options import ByteCount

if TYPE_CHECKING:
    from regent.simulation.report import FlightReport

_F = TypeVar("_F", bound=Callable[..., Any])

_STEPS: Final = "regent.steps"


class ScenarioCommand(click.Command):
    """A command some of whose options are steps: their order on the command line counts."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        values, _, order = self.make_parser(ctx).parse_args(args=list(args))
        given = {name: iter(values.get(name, ())) for name in STEPS}
        ctx.meta[_STEPS] = [
            (parameter, next(given[parameter.name]))
            for parameter in order
            if parameter.name in given
        ]
        return super().parse_args(ctx, args)


def flown(ctx: click.Context, file: Path, **options: Any) -> FlightReport:
    """What the steps of the command line make of a snapshot.

    Raises:
        UsageError: A value is not one that its step takes, or there is no step.
        ConfigurationError: The file cannot be read, is no snapshot, or a step cannot be.
    """
    # Imported here so that the other commands start quickly.
    from regent.runtime.collector import Collector
    from regent.simulation.flight import fly

    steps, conditions = _steps(ctx), _conditions(**options)
    with Collector().paused():
        return fly(_snapshot(file), steps, conditions)


def _steps(ctx: click.Context) -> tuple[Step, ...]:
    steps = []
    for parameter, value in ctx.meta[_STEPS]:
        try:
            steps.append(parse_step(parameter.name, value))
        except ConfigurationError as error:
            raise click.BadParameter(str(error), ctx, parameter) from error
    if not steps:
        raise click.UsageError("say what happens: --kill 3, for instance; see --help", ctx)
    return tuple(steps)


def _conditions(
    *,
    session_timeout: float,
    elections_per_second: int,
    restart_time: float,
    written: int,
    throttle: int,
    min_isr: tuple[tuple[str | None, int], ...],
    leader_balance: bool,
) -> Conditions:
    """Of several ``--min-isr`` without a topic the last one counts."""
    defaults = [value for topic, value in min_isr if topic is None] or [Conditions().min_isr]
    return Conditions(
        session_timeout_s=session_timeout,
        elections_per_s=elections_per_second,
        restart_s=restart_time,
        written=written,
        throttle=throttle,
        min_isr=defaults[-1],
        min_isr_patterns=tuple((topic, value) for topic, value in min_isr if topic is not None),
        balances_leaders=leader_balance,
    )


def _snapshot(file: Path) -> Snapshot:
    if file.suffix == ".parquet":
        raise ConfigurationError(
            f"{file}: Parquet has no ISRs. Take the snapshot with regent snapshot -o FILE.json"
        )
    try:
        require_end(file)
        content = file.read_bytes()
    except UnusableFileError as error:
        raise ConfigurationError(str(error)) from error
    except OSError as error:
        raise ConfigurationError(f"{file} cannot be read: {error.strerror}") from error
    return decode_snapshot(content, source=str(file))


def _min_isrs(
    _: click.Context, __: click.Parameter, values: tuple[str, ...]
) -> tuple[tuple[str | None, int], ...]:
    found: list[tuple[str | None, int]] = []
    for value in values:
        topic, equals, number = value.rpartition("=")
        is_number = len(number) <= 9 and number.isdecimal() and int(number) >= 1
        if not is_number or (equals and not topic):
            raise click.BadParameter(f"{value!r} is neither a number from 1 on nor TOPIC=NUMBER")
        found.append((topic or None, int(number)))
    return tuple(found)


def _step(name: str, metavar: str, help_text: str) -> Callable[[_F], _F]:
    return click.option(
        f"--{name.replace('_', '-')}",
        name,
        multiple=True,
        expose_value=False,
        metavar=metavar,
        help=help_text,
    )


class _Seconds(click.FloatRange):
    """More than none, and at most a day."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Raises UsageError for anything else; nan is in no range, and in none out of it."""
        seconds: float = super().convert(value, param, ctx)
        if math.isnan(seconds):
            self.fail(f"{value!r} is no number of seconds", param, ctx)
        return seconds


_SECONDS: Final = _Seconds(min=0, min_open=True, max=86_400)

_OPTIONS: Final = (
    click.argument("snapshot", type=click.Path(dir_okay=False, path_type=Path)),
    _step("kill", "ID[,ID...]", "Step: these brokers die together, without a word (kill -9)."),
    _step("kill_rack", "RACK", "Step: all living brokers of this rack die together."),
    _step("stop", "ID[,ID...]", "Step: stop these brokers in order (SIGTERM), one by one."),
    _step("start", "ID[,ID...]", "Step: start these dead brokers together."),
    _step("restart", "ID[,ID...]",
          "Step: restart these brokers one by one, each once the one before is in sync."),
    _step("add_broker", "ID=RACK", "Step: a broker without replicas joins."),
    _step("unclean", "on|off", "Step: set the cluster's unclean.leader.election.enable."),
    _step("wait", "SECONDS", "Step: time passes."),
    click.option("--min-isr", multiple=True, callback=_min_isrs, metavar="[TOPIC=]NUMBER",
                 help="min.insync.replicas of topics of which the snapshot does not tell it (1), "
                 "or of a TOPIC in any case; TOPIC may be a pattern such as 'orders-*'."),
    click.option("--session-timeout", type=_SECONDS, default=18.0, show_default=True,
                 metavar="SECONDS", help="zookeeper.session.timeout.ms of the brokers: how long "
                 "nobody notices a death."),
    click.option("--elections-per-second", type=click.IntRange(min=1), default=ELECTIONS_PER_S,
                 show_default=True, help="Leaders that are elected and known to all brokers."),
    click.option("--restart-time", type=_SECONDS, default=30.0, show_default=True,
                 metavar="SECONDS", help="How long a broker that is restarted is down."),
    click.option("--written", type=ByteCount(), default="0", show_default=True,
                 help="Bytes a second that producers write to the whole cluster."),
    click.option("--throttle", type=ByteCount(), default="50MB", show_default=True,
                 help="Bytes a second that a broker that returns copies."),
    click.option("--leader-balance/--no-leader-balance", default=True, show_default=True,
                 help="auto.leader.rebalance.enable."),
    click.option("--all", "everything", is_flag=True, help="Name everything."),
)  # fmt: skip


def scenario_options(command: _F) -> _F:
    """The command with all of them, which are shown in this order."""
    return functools.reduce(lambda wrapped, option: option(wrapped), reversed(_OPTIONS), command)


@click.command(cls=ScenarioCommand)
@scenario_options
@json_option
@click.pass_context
def simulate(
    ctx: click.Context, /, *, snapshot: Path, everything: bool, as_json: bool, **options: Any
) -> None:
    """Say what would happen if brokers of a snapshot file (JSON) failed, were stopped or started.

    The steps happen in the order in which they are given. The real controller core decides over a
    cluster in memory; nothing is asked of, or done to, any other.

    \b
    Exit status, the first that applies:
      1  the snapshot is invalid, or a step cannot be
      2  the command is used wrongly
      5  partitions have no leader after some step
      10 partitions are below min.insync.replicas after some step
      0  none of these
    """
    from regent.simulation.text import render_report

    report = flown(ctx, snapshot, **options)
    print_text(
        json.dumps(report.document(), indent=2) + "\n"
        if as_json
        else render_report(report, shown=sys.maxsize if everything else 10)
    )
    sys.exit(report.status)
