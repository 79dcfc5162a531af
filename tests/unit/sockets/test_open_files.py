"""The limit of open files, in a process of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest

LIMITS = """
import resource, sys
soft, hard = map(int, sys.argv[1:])
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
from regent.sockets.open_files import allow_open_files
allow_open_files()
print(*resource.getrlimit(resource.RLIMIT_NOFILE))
"""


@pytest.mark.parametrize(("soft", "hard"), [(256, 512), (512, 512)])
def test_a_process_may_open_as_many_files_as_the_hard_limit_lets_it(soft: int, hard: int) -> None:
    command = [sys.executable, "-c", LIMITS, str(soft), str(hard)]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert found == [str(hard), str(hard)]
