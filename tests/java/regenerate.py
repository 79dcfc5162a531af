"""Rewrites the golden frames: ``.venv/bin/python -m tests.java.regenerate``, with a JDK at hand.

For each Kafka release, Kafka's own classes serialize the batches of ``cases.txt``, and the requests
and responses of ``server_cases.txt``. The result is committed, so that the tests themselves need no
Java. Each line of a golden file is the name of the case, the request, its version, and the frame
behind its length in hexadecimal; client id is the controller's id, correlation id 42. In the
golden files of the server, ``request`` or ``response`` precedes the version.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from sandbox.kafka_jars import kafka_jars

HERE = Path(__file__).parent
RELEASES = {
    "1.1.1": "Frames1_1",
    "2.4.1": "Frames2_4",
    "2.8.2": "Frames2_4",
    "3.3.2": "Frames2_4",
    "3.9.1": "Frames2_4",
}


def generate(release: str, *, generator: str, reader: str, cases: str) -> str:
    """The golden file of one Kafka release.

    Args:
        generator: Name of the class that makes the frames.
        reader: Name of the class that reads the cases.
        cases: File name of the cases.
    """
    class_path = kafka_jars(release).class_path
    with tempfile.TemporaryDirectory() as classes:
        sources = [HERE / f"{reader}.java", HERE / f"{generator}.java"]
        subprocess.run(["javac", "-cp", class_path, "-d", classes, *sources], check=True)
        return subprocess.run(
            ["java", "-cp", f"{classes}:{class_path}", generator, HERE / cases],
            check=True,
            capture_output=True,
            text=True,
        ).stdout


def main() -> None:
    """Rewrite every golden file."""
    for release, generator in RELEASES.items():
        requests = generate(release, generator=generator, reader="Cases", cases="cases.txt")
        (HERE / "golden" / f"{release}.txt").write_text(requests)
        served = generate(
            release,
            generator=f"Server{generator}",
            reader="ServerCases",
            cases="server_cases.txt",
        )
        (HERE / "golden" / "server" / f"{release}.txt").write_text(served)


if __name__ == "__main__":
    main()
