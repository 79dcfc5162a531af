"""Images without Docker. The nodes of ``tests/e2e`` load and run them."""

import json
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from sandbox.node.images import REGENT_CONFIG
from sandbox.node.layers import write_layer
from sandbox.node.planner import PLANNER_CONFIG

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def content(tmp_path: Path) -> Path:
    folder = tmp_path / "content"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "program").write_text("#!/bin/sh\n")
    (folder / "bin" / "program").chmod(0o755)
    (folder / "bin" / "alias").symlink_to("program")
    return folder


def test_the_same_content_makes_the_same_layer(content: Path, tmp_path: Path) -> None:
    write_layer(tmp_path / "first.tar", content)
    (content / "bin" / "program").touch()
    write_layer(tmp_path / "second.tar", content)
    assert (tmp_path / "first.tar").read_bytes() == (tmp_path / "second.tar").read_bytes()


def instructions_of(dockerfile: Path) -> dict[str, str]:
    """Those of the last stage that make the image's configuration."""
    text = dockerfile.read_text().replace("\\\n", " ")
    final = text[text.rindex("\nFROM ") :]
    names = "USER|ENTRYPOINT|CMD|ENV|WORKDIR"
    return dict(re.findall(rf"^({names}) (.*)$", final, re.MULTILINE))


@pytest.mark.parametrize(
    ("config", "folder", "prefix"),
    [(REGENT_CONFIG, "operator", True), (PLANNER_CONFIG, "spark_tasks", False)],
    ids=["Regent", "planner"],
)
def test_an_image_is_configured_as_its_dockerfile_says(
    config: Mapping[str, Any], folder: str, prefix: bool
) -> None:
    """The planner's Python is in a virtual environment: its PATH is another one."""
    instructions = instructions_of(ROOT / folder / "Dockerfile")
    assert config["User"] == instructions["USER"]
    assert config.get("WorkingDir") == instructions.get("WORKDIR")
    assert config["Entrypoint"] == json.loads(instructions["ENTRYPOINT"])
    assert config.get("Cmd") == json.loads(instructions.get("CMD", "null"))
    variables = dict(each.split("=", 1) for each in config["Env"])
    wanted = dict(each.split("=", 1) for each in shlex.split(instructions["ENV"]))
    path, wanted_path = (each.pop("PATH", "").split(":")[0] for each in (variables, wanted))
    assert not prefix or path == wanted_path
    assert variables == wanted
