"""``python -m regent_rebalance`` is ``regent plan``, where there is no ``regent``."""

from regent_rebalance.cli import plan

plan(prog_name="python -m regent_rebalance")
