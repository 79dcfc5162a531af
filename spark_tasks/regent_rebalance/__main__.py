"""``python -m regent_rebalance`` is ``regent plan``, where there is no ``regent``.

Exit status 6: a package is missing that planning needs; 8: there is not even memory to begin.
"""

import sys

from regent_rebalance.shortages import shortages_named

_PACKAGE_MISSING = 6

try:
    with shortages_named():
        from regent_rebalance.cli import plan
except ModuleNotFoundError as error:
    sys.stderr.write(
        f"Error: planning needs the package {error.name}: pip install 'regent[planner]'\n"
    )
    sys.exit(_PACKAGE_MISSING)

plan(prog_name="python -m regent_rebalance")
