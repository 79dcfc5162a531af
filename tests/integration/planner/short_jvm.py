"""How tests start a Spark that lives for one small plan."""

from __future__ import annotations

from typing import Final

SHORT_JVM: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Options of its JVM: it ends before what the second compiler makes, and threads of a parallel
collector, would pay."""
