"""A plan as one HTML file: no scripts, nothing to load, the same bytes for the same plan."""

from __future__ import annotations

import jinja2

from regent_rebalance.charts import bar_chart, heat_map, timeline
from regent_rebalance.errors import InvalidInputError
from regent_rebalance.flows import broker_flows, rack_loads
from regent_rebalance.plan import Plan
from regent_rebalance.units import size_text, time_text

SHOWN_CHANGES = 500
"""Changes that a report lists: the plan file has them all."""


def render_report(plan: Plan) -> str:
    """Raises InvalidInputError for a plan without details: it knows no brokers."""
    details = plan.details
    if details is None:
        raise InvalidInputError(f"plan {plan.hash} says nothing of brokers: plan again")
    flows = broker_flows(plan, details)
    spans, least, ticks = timeline(details.schedule, time_text)
    before, after = plan.changes.lists()
    numbers = plan.batch_numbers().tolist()
    shown = range(min(SHOWN_CHANGES, len(plan.changes)))
    return _template().render(
        plan=plan,
        summary=plan.summary,
        details=details,
        schedule=details.schedule,
        charts=[
            bar_chart(
                "Replicas", details.brokers, lambda b: b.replicas, _count, details.replica_limits
            ),
            bar_chart(
                "Leaders", details.brokers, lambda b: b.leaders, _count, details.leader_limits
            ),
            bar_chart("Disk", details.brokers, lambda b: b.disk, size_text, capacity=True),
        ],
        flows=flows,
        heat=heat_map(flows),
        racks=rack_loads(details),
        spans=spans,
        least=least,
        ticks=ticks,
        begins=_begins(plan),
        changes=[
            (f"{plan.changes.topic[i]}-{plan.changes.partition[i]}", before[i], after[i],
             int(plan.changes.bytes[i]), numbers[i])
            for i in shown
        ],
    )  # fmt: skip


def _begins(plan: Plan) -> list[float]:
    """When each batch begins, in seconds."""
    begins, now = [], 0.0
    if plan.details is not None:
        schedule = plan.details.schedule
        for batch in schedule.batches:
            begins.append(now)
            now += batch.load / schedule.limits.rate
    return begins


def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("regent_rebalance", "templates"),
        autoescape=True,  # names of racks and topics are anybody's
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"size": size_text, "time": time_text, "count": _count}
    return environment.get_template("report.html")


def _count(value: float) -> str:
    return f"{round(value):,}"
