"""Images without Docker: what an archive has in it, and what Regent's image has to be like."""

import hashlib
import json
import re
import shlex
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from sandbox.node.images import REGENT_CONFIG
from sandbox.node.layers import Image, write_archive, write_layer
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


def test_a_layer_belongs_to_root_and_keeps_modes_and_links(content: Path, tmp_path: Path) -> None:
    write_layer(tmp_path / "layer.tar", content)
    with tarfile.open(tmp_path / "layer.tar") as tar:
        members = {member.name: member for member in tar}
    assert list(members) == ["bin", "bin/alias", "bin/program"]
    assert {(member.uid, member.gid) for member in members.values()} == {(0, 0)}
    assert members["bin/program"].mode == 0o755
    assert members["bin/alias"].linkname == "program"


def test_an_archive_names_its_layers_by_their_content(content: Path, tmp_path: Path) -> None:
    layer, archive = tmp_path / "layer.tar", tmp_path / "image.tar"
    write_layer(layer, content)
    write_archive(archive, [Image("localhost/thing:1", [layer], {"User": "1:1"})])
    digest = hashlib.sha256(layer.read_bytes()).hexdigest()
    with tarfile.open(archive) as tar:
        stored = {member.name: tar.extractfile(member) for member in tar}
        texts = {name: file.read() for name, file in stored.items() if file is not None}
    (manifest,) = json.loads(texts["manifest.json"])
    assert manifest["RepoTags"] == ["localhost/thing:1"]
    assert manifest["Layers"] == [f"{digest}.tar"]
    assert texts[f"{digest}.tar"] == layer.read_bytes()
    config = json.loads(texts[manifest["Config"]])
    assert config["rootfs"]["diff_ids"] == [f"sha256:{digest}"]
    assert config["config"] == {"User": "1:1"}


def test_a_layer_of_several_images_is_in_an_archive_once(content: Path, tmp_path: Path) -> None:
    shared, own, archive = (tmp_path / name for name in ("shared.tar", "own.tar", "images.tar"))
    write_layer(shared, content)
    write_layer(own, content / "bin")
    images = [
        Image("localhost/a:1", [shared], {"User": "1:1"}),
        Image("localhost/b:1", [shared, own], {"User": "2:2"}),
    ]
    write_archive(archive, images)
    with tarfile.open(archive) as tar:
        names = tar.getnames()
        file = tar.extractfile("manifest.json")
        assert file is not None
        first, second = json.loads(file.read())
    assert len(names) == len(set(names)) == 2 + 2 + 1
    assert [each["RepoTags"] for each in (first, second)] == [["localhost/a:1"], ["localhost/b:1"]]
    assert second["Layers"][:1] == first["Layers"]
    assert len(second["Layers"]) == 2


def instructions_of(dockerfile: Path) -> dict[str, str]:
    """Those of the last stage that make the image's configuration."""
    text = dockerfile.read_text().replace("\\\n", " ")
    final = text[text.rindex("\nFROM ") :]
    names = "USER|ENTRYPOINT|CMD|ENV|WORKDIR"
    return dict(re.findall(rf"^({names}) (.*)$", final, re.MULTILINE))


def variables_of(config: Mapping[str, Any]) -> dict[str, str]:
    return dict(each.split("=", 1) for each in config["Env"])


def test_regents_image_is_configured_as_the_dockerfile_says() -> None:
    config = REGENT_CONFIG
    instructions = instructions_of(ROOT / "operator" / "Dockerfile")
    assert config["User"] == instructions["USER"]
    assert config["Entrypoint"] == json.loads(instructions["ENTRYPOINT"])
    assert config["Cmd"] == json.loads(instructions["CMD"])
    variables = variables_of(config)
    wanted = dict(each.split("=", 1) for each in shlex.split(instructions["ENV"]))
    first = wanted.pop("PATH").split(":")[0]
    assert variables.pop("PATH").split(":")[0] == first
    assert variables == wanted


def test_the_planners_image_is_configured_as_the_dockerfile_says() -> None:
    config = PLANNER_CONFIG
    instructions = instructions_of(ROOT / "spark_tasks" / "Dockerfile")
    assert config["User"] == instructions["USER"]
    assert config["WorkingDir"] == instructions["WORKDIR"]
    assert config["Entrypoint"] == json.loads(instructions["ENTRYPOINT"])
    variables = variables_of(config)
    del variables["PATH"]  # its Python is in a virtual environment
    assert variables == dict(each.split("=", 1) for each in shlex.split(instructions["ENV"]))
