"""Rewrites the tables of topic configurations: ``python -m tests.java.regenerate_topic_configs``.

They come out of Kafka's own classes: the last patch release of each minor version. The jars of all
of them are fetched, which is why this is no part of ``make generate``; a test compares the tables
with the releases that are tested anyway.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from regent.model.topic_config.definitions import KafkaVersion
from tests.java.topic_configs import definitions

RELEASES = (
    *("1.1.1", "2.0.1", "2.1.1", "2.2.2", "2.3.1", "2.4.1", "2.5.1", "2.6.3", "2.7.2", "2.8.2"),
    *("3.0.2", "3.1.2", "3.2.3", "3.3.2", "3.4.1", "3.5.2", "3.6.2", "3.7.2", "3.8.1", "3.9.1"),
)

_ROOT = Path(__file__).parents[2]
_REGENT = _ROOT / "operator" / "regent"
_HEADER = '''\
"""{title}

Generated from Kafka's own classes by ``tests.java.regenerate_topic_configs``; do not edit. Made of
these releases: {releases}.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

'''


def version_of(release: str) -> KafkaVersion:
    """(3, 9) of "3.9.1"."""
    major, minor, *_ = release.split(".")
    return int(major), int(minor)


def render(found: Mapping[str, Any]) -> dict[Path, str]:
    """The generated modules, from the definitions of releases in ascending order."""
    return {
        _REGENT / "model" / "topic_config" / "kafka_definitions.py": _formatted(
            "".join(_definitions_module(found))
        ),
        _REGENT / "protocol" / "kafka_api_versions.py": "".join(_api_versions_module(found)),
    }


def described_key(raw: Mapping[str, Any]) -> str:
    """Source text of the ``Definition`` of a key as ``TopicConfigs.java`` describes it."""
    fields = [f"ConfigType.{raw['type']}"]
    if "ranges" in raw:
        ranges = ", ".join(f"Range({low}, {high})" for low, high in raw["ranges"])
        fields.append(f"ranges=({ranges},)")
    if "choices" in raw:
        fields.append(f"choices=({', '.join(repr(c) for c in sorted(raw['choices']))},)")
    return f"Definition({', '.join(fields)})"


def _definitions_module(found: Mapping[str, Any]) -> Iterator[str]:
    yield _header("What each version of Kafka defines for topics.", found)
    yield (
        "from regent.model.topic_config.definitions import (\n"
        "    ConfigType, DefinedSince, Definition, KafkaVersion, Range)\n\n"
    )
    versions = ", ".join(str(version_of(release)) for release in found)
    yield f"KNOWN_VERSIONS: Final[tuple[KafkaVersion, ...]] = ({versions},)\n\n"
    yield "DEFINITIONS: Final[Mapping[str, tuple[DefinedSince, ...]]] = {\n"
    for name in sorted({name for each in found.values() for name in each["keys"]}):
        yield f"    {name!r}: ("
        before: str | None = "None"
        for release, each in found.items():
            raw = each["keys"].get(name)
            now = "None" if raw is None else described_key(raw)
            if now != before:
                yield f"DefinedSince({version_of(release)}, {now}), "
            before = now
        yield "),\n"
    yield "}\n\n"
    yield "FORMAT_VERSIONS: Final[Mapping[str, KafkaVersion]] = {\n"
    for name, since in _first_seen(found).items():
        yield f"    {name!r}: {since},\n"
    yield '}\n"""Values of message.format.version, with the first version that knows each."""\n'


def _first_seen(found: Mapping[str, Any]) -> dict[str, KafkaVersion]:
    """Each format version with the first release that has it; later ones must have it, too."""
    first: dict[str, KafkaVersion] = {}
    for release, each in found.items():
        missing = [name for name in first if name not in each["format_versions"]]
        if missing:
            raise ValueError(f"{release} no longer knows the format versions {missing}")
        for name in each["format_versions"]:
            first.setdefault(name, version_of(release))
    return first


def _api_versions_module(found: Mapping[str, Any]) -> Iterator[str]:
    yield _header("The newest version of each API that each version of Kafka serves.", found)
    last = found[max(found, key=version_of)]
    yield "# fmt: off\nAPI_VERSIONS: Final[Mapping[tuple[int, int], Mapping[int, int]]] = {\n"
    for release, each in found.items():
        newest = sorted(
            (int(api), version)
            for api, version in each["api_versions"].items()
            if version >= 0 and api in last["api_versions"]
        )
        entries = ", ".join(f"{api}: {version}" for api, version in newest)
        yield f"    {version_of(release)}: {{\n"
        yield textwrap.indent(textwrap.fill(entries, 92, break_on_hyphens=False), " " * 8)
        yield ",\n    },\n"
    yield '}\n"""Only APIs that a broker serves whatever it is configured to, and for good."""\n'


def _header(title: str, found: Mapping[str, Any]) -> str:
    releases = textwrap.fill(", ".join(found), 99, initial_indent=" " * 22).lstrip()
    return _HEADER.format(title=title, releases=releases)


def _formatted(source: str) -> str:
    result = source
    for arguments in (["check", "--fix", "--exit-zero", "--quiet", "-"], ["format", "-"]):
        result = subprocess.run(
            [sys.executable, "-m", "ruff", *arguments, "--stdin-filename=generated.py"],
            input=result,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # what only formatting corrects
            check=True,
            text=True,
            cwd=_ROOT,
        ).stdout
    return result


if __name__ == "__main__":
    for path, text in render({release: definitions(release) for release in RELEASES}).items():
        path.write_text(text)
