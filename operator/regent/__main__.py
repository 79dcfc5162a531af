"""``python -m regent``."""

from regent.cli import main

main()
