"""The images: what is in them, and how they are made without Docker.

Layers are kept in the cache under a hash of all that decides their content; an image is put
together when it is loaded.
"""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sandbox.caching import content_hash
from sandbox.java import write_log_configuration
from sandbox.kafka_jars import DEFAULT_VERSION, kafka_jars
from sandbox.kubernetes_binaries import node_binaries
from sandbox.node.building import (
    PYTHON,
    ROOT,
    cached_layer,
    code_parts,
    install_code,
    make_venv,
    require_same_python,
    uv_install,
    write_program,
)
from sandbox.node.configuration import PAUSE_IMAGE
from sandbox.node.debian import base_layers
from sandbox.node.layers import Image
from sandbox.node.planner import planner_image, spark_operator_image
from sandbox.tools import KafkaTools

KAFKA_USER = "1000:1000"
_VENV = "opt/regent"
REGENT_CONFIG: Mapping[str, Any] = {
    "Env": [
        f"PATH=/{_VENV}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "PYTHONDONTWRITEBYTECODE=1",
        "PYTHONUNBUFFERED=1",
    ],
    "User": "65532:65532",
    "Entrypoint": ["regent"],
    "Cmd": ["run"],
}
"""As in `operator/Dockerfile`."""

_KAFKA_FILES = Path(__file__).parent / "kafka"


def all_images() -> list[Image]:
    """What a node needs for Kafka, Regent and plans on Spark."""
    planner = planner_image()
    return [
        *(pause_image(), zookeeper_image(), kafka_image(), regent_image()),
        *(planner, spark_operator_image(planner)),
    ]


def pause_image() -> Image:
    """What holds the namespaces of a pod."""
    program = node_binaries().path("pause")

    def make(content: Path) -> None:
        shutil.copy(program, content / "pause")

    layer = cached_layer("pause", make, program.read_bytes())
    return Image(PAUSE_IMAGE, [layer], {"Entrypoint": ["/pause"]})


def regent_image() -> Image:
    """Regent as `operator/Dockerfile` makes it: Python, the locked dependencies, the code.

    Raises:
        MissingProgramError: there is no uv, which `make setup` installs.
        StepError: the dependencies could not be installed, or Debian's Python is another one.
    """
    base = base_layers()
    require_same_python(base.python)
    lock = ROOT / "requirements" / "runtime.txt"
    locked, parts = lock.read_bytes(), code_parts()
    dependencies = cached_layer("regent-dependencies", _install_dependencies, locked, PYTHON)
    code = cached_layer("regent", _install_code, *parts, PYTHON)
    return Image(
        f"localhost/regent:{content_hash(locked, *parts)}",
        [base.python, dependencies, code],
        REGENT_CONFIG,
    )


def kafka_image(version: str = DEFAULT_VERSION) -> Image:
    """Kafka's brokers and tools; settings come as variables, as in the image that
    `examples/kind/kafka.yaml` names."""
    return _kafka_image("kafka", version)


def zookeeper_image(version: str = DEFAULT_VERSION) -> Image:
    """The ZooKeeper that a version of Kafka comes with."""
    return _kafka_image("zookeeper", version)


def _kafka_image(name: str, version: str) -> Image:
    jars = kafka_jars(version)
    base = base_layers()
    scripts = [file.read_bytes() for file in sorted(_KAFKA_FILES.glob("*.sh"))]

    def make(content: Path) -> None:
        libraries = content / "opt" / "kafka" / "libs"
        shutil.copytree(jars.directory, libraries, ignore=shutil.ignore_patterns("pom.xml"))
        write_log_configuration(libraries.parent / "server-log4j.properties")
        write_log_configuration(
            libraries.parent / "tools-log4j.properties", level="WARN", stream="err"
        )
        programs = content / "usr" / "local" / "bin"
        programs.mkdir(parents=True)
        for script in sorted(_KAFKA_FILES.glob("*.sh")):
            write_program(programs / script.stem, script.read_text())
        for tool, class_name in KafkaTools("", version=version).main_classes().items():
            write_program(programs / tool, f'#!/bin/sh\nexec kafka-class {class_name} "$@"\n')
        for folder in ("var/lib/kafka/data", "var/lib/zookeeper"):
            (content / folder).mkdir(parents=True)
            (content / folder).chmod(0o777)

    layer = cached_layer("kafka", make, jars.directory.name, *scripts)
    return Image(
        f"localhost/{name}:{version}",
        [base.python, base.java, layer],
        {
            "Env": ["PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/tmp"],
            "User": KAFKA_USER,
            "Entrypoint": ["tini", "--", f"run-{name}"],
        },
    )


def _install_dependencies(content: Path) -> None:
    make_venv(content, _VENV)
    lock = ROOT / "requirements" / "runtime.txt"
    uv_install(content, _VENV, "--require-hashes", "--requirement", lock)


def _install_code(content: Path) -> None:
    install_code(content, _VENV)
    program = content / _VENV / "bin" / "regent"
    program.parent.mkdir(parents=True, exist_ok=True)
    write_program(program, f"#!/{_VENV}/bin/python\nfrom regent.cli import main\n\nmain()\n")
