"""Rewrites the golden frames: ``.venv/bin/python -m tests.java.regenerate``, with a JDK at hand.

For each Kafka release, Kafka's own request classes serialize the batches of ``cases.txt``. The
result is committed, so that the tests themselves need no Java. Each line of a golden file is the
name of the case, the request, its version, and the frame behind its length in hexadecimal; client
id is the controller's id, correlation id 42.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from sandbox.kafka_jars import kafka_jars

HERE = Path(__file__).parent
GENERATORS = {
    "1.1.1": "Frames1_1",
    "2.4.1": "Frames2_4",
    "2.8.2": "Frames2_4",
    "3.3.2": "Frames2_4",
    "3.9.1": "Frames2_4",
}


def generate(release: str) -> str:
    """The golden file of one Kafka release."""
    class_path = kafka_jars(release).class_path
    generator = GENERATORS[release]
    with tempfile.TemporaryDirectory() as classes:
        sources = [HERE / "Cases.java", HERE / f"{generator}.java"]
        subprocess.run(["javac", "-cp", class_path, "-d", classes, *sources], check=True)
        return subprocess.run(
            ["java", "-cp", f"{classes}:{class_path}", generator, HERE / "cases.txt"],
            check=True,
            capture_output=True,
            text=True,
        ).stdout


if __name__ == "__main__":
    for release in GENERATORS:
        (HERE / "golden" / f"{release}.txt").write_text(generate(release))
