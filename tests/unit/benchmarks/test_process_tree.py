"""What a command and all that it starts cost."""

from __future__ import annotations

from benchmarks.process_tree import Costs, Process


def process(pid: int, parent: int, command: str = "x", cpu_s: float = 0.0) -> Process:
    return Process(pid, parent, 1, command, cpu_s)


def test_parts_add_up_and_the_highest_moment_counts() -> None:
    costs = Costs(lambda command: command)
    costs.add([(process(1, 0, "shell", 0.1), 5.0)])
    costs.add([(process(1, 0, "java", 1.0), 300.0), (process(2, 1, "python", 0.5), 100.0)])
    # A process that has ended has no command, and no memory.
    costs.add([(process(1, 0, "java", 3.0), 350.0), (process(2, 1, "", 0.7), 0.0)])
    assert costs.cpu_s() == {"java": 3.0, "python": 0.7}
    assert (costs.peak_mib, costs.peak_mib_of["java"]) == (400.0, 350.0)
