"""A plan, and the difference of two, for people at a terminal."""

from __future__ import annotations

from regent_rebalance.plan import Plan, Spread, Summary
from regent_rebalance.text_details import assumption_lines, detail_lines
from regent_rebalance.units import size_text, time_text

_SHOWN = 20


def render_plan(plan: Plan, *, shown: int = _SHOWN) -> str:
    """What a plan does and what is proved of it; its first changes."""
    s = plan.summary
    lines = [
        f"plan       {plan.hash}",
        f"changes    {len(plan.changes):,} partitions",
        f"moves      {s.moves:,} new replicas, {size_text(s.bytes)}; {s.removals:,} removed for "
        "good",
        f"bound      {s.bounds.moves:,} new replicas ({_bound_names(plan)}){_gap(s)}",
        f"           {size_text(s.bounds.bytes)} at least",
        *_objective_lines(s),
        f"leaders    {s.leader_changes:,} change; {s.leader_changes_bound:,} at least, with these "
        "replicas",
    ]
    if plan.details is not None:
        lines += assumption_lines(plan.details)
    lines += ["", "goals"]
    for goal in s.goals:
        lines.append(f"  {goal.name:<30} {'met' if goal.met else 'NOT MET'} ({goal.kind})")
        if goal.reason:
            lines.append(f"      {goal.reason}")
        if goal.unknown:
            lines.append(f"      {goal.unknown}")
    lines += ["", "balance of the brokers that keep replicas", _SPREAD_HEAD]
    for before, after in zip(s.before, s.after, strict=True):
        lines += [_spread_line(before, "before"), _spread_line(after, "after")]
    if plan.details is not None:
        lines += detail_lines(plan, plan.details, shown=shown)
    return "\n".join([*lines, *_change_lines(plan, shown)]) + "\n"


_SPREAD_HEAD = (
    f"  {'':<11} {'':<7} {'least':>12} {'average':>12} {'most':>12} {'deviation':>10}  outside"
)


def _spread_line(spread: Spread, when: str) -> str:
    def figure(value: float) -> str:
        if spread.name in ("replicas", "leaders"):
            return f"{value:,.6g}"
        return size_text(round(value)) + ("" if spread.name == "disk" else "/s")

    name = spread.name if when == "before" else ""
    outside = "" if spread.outside is None else f"{spread.outside} brokers"
    return (
        f"  {name:<11} {when:<7} {figure(spread.least):>12} {figure(spread.mean):>12} "
        f"{figure(spread.most):>12} {spread.deviation:>10.1%}  {outside}"
    ).rstrip()


def _change_lines(plan: Plan, shown: int) -> list[str]:
    before, after = plan.changes.lists()
    lines = ["", "changes"] if len(plan.changes) and shown else []
    for i in range(min(shown, len(plan.changes))):
        name = f"{plan.changes.topic[i]}-{plan.changes.partition[i]}"
        lines.append(f"  {name:<40} {_step(before[i], after[i])}")
    if len(plan.changes) > shown > 0:
        lines.append(f"  and {len(plan.changes) - shown:,} more: --all shows them")
    return lines


def render_difference(old: Plan, new: Plan, *, shown: int = _SHOWN) -> str:
    """Partitions that two plans treat differently."""
    first, second = _by_name(old), _by_name(new)
    only_old = [name for name in first if name not in second]
    only_new = [name for name in second if name not in first]
    other = [name for name in first if name in second and first[name] != second[name]]
    if not (only_old or only_new or other):
        return f"the plans change the same: {old.hash}\n"
    lines = [
        f"- {old.hash}  {_outline(old)}",
        f"+ {new.hash}  {_outline(new)}",
        "",
        f"{len(only_old):,} partitions change in the first alone, {len(only_new):,} in the second "
        f"alone, {len(other):,} to other replicas",
    ]
    names = sorted([*only_old, *only_new, *other])
    for name in names[:shown]:
        topic, partition = name
        lines.append(f"  {topic}-{partition}")
        for sign, changes in (("-", first), ("+", second)):
            before, after = changes.get(name, (None, None))
            text = "not changed" if after is None else _step(before or [], after)
            lines.append(f"    {sign} {text}")
    if len(names) > shown:
        lines.append(f"  and {len(names) - shown:,} more: --all shows them")
    return "\n".join(lines) + "\n"


def _outline(plan: Plan) -> str:
    s = plan.summary
    parts = [
        f"{s.moves:,} new replicas",
        size_text(s.bytes),
        f"{s.leader_changes:,} leaders",
        f"{sum(goal.met for goal in s.goals)} of {len(s.goals)} goals met",
    ]
    if plan.details is not None:
        parts.append(time_text(plan.details.schedule.seconds))
    return ", ".join(parts)


def _by_name(plan: Plan) -> dict[tuple[str, int], tuple[list[int], list[int]]]:
    names = zip(plan.changes.topic, plan.changes.partition.tolist(), strict=True)
    return dict(zip(names, zip(*plan.changes.lists(), strict=True), strict=True))


def _bound_names(plan: Plan) -> str:
    bounds = plan.summary.bounds
    return f"dual {bounds.dual:,}, mandatory {bounds.mandatory:,}, fractional {bounds.fractional:,}"


def _gap(summary: Summary) -> str:
    """How far from the bound on moves, where moves are what is saved."""
    if summary.objective is not None:
        return ""
    return "; gap 0: nobody moves fewer" if summary.gap == 0 else f"; gap {summary.gap:.2%}"


def _objective_lines(summary: Summary) -> list[str]:
    found = summary.objective
    if found is None:
        return []
    return [
        f"cost       {found.cost:,.1f}, a replica of the average size being 1 (bytes count "
        f"{found.bytes_share:.0%}); {found.bound:,.1f} at least; gap {summary.gap:.2%}"
    ]


def _step(before: list[int], after: list[int]) -> str:
    if before == after:
        return f"{_list(after)}, led by {after[0]} again"
    return f"{_list(before)} -> {_list(after)}"


def _list(brokers: list[int]) -> str:
    return "[" + ",".join(map(str, brokers)) + "]"
