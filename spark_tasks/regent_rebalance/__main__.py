"""``python -m regent_rebalance`` is ``regent plan``, where there is no ``regent``.

Exit status 6: a package is missing that planning needs.
"""

import sys

_PACKAGE_MISSING = 6

try:
    from regent_rebalance.cli import plan
except ModuleNotFoundError as error:
    sys.stderr.write(
        f"Error: planning needs the package {error.name}: pip install 'regent[planner]'\n"
    )
    sys.exit(_PACKAGE_MISSING)

plan(prog_name="python -m regent_rebalance")
