"""Writes everything in the repository that is generated from the code; with ``--check`` compares.

Each generator returns paths and contents.
"""

from __future__ import annotations

import enum
import json
import sys
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from regent.controller.state.states import PARTITION_PREVIOUS_STATES, REPLICA_PREVIOUS_STATES
from regent.resources.crd import render_crds
from regent.settings import Settings
from regent.settings.hosts import HOST_PATTERN
from regent.settings.markdown import render_markdown

ROOT = Path(__file__).resolve().parent.parent


def _crds() -> dict[Path, str]:
    return {ROOT / "crds" / name: content for name, content in render_crds().items()}


def _chart_crds() -> dict[Path, str]:
    folder = ROOT / "charts" / "regent" / "files" / "crds"
    return {folder / name: content for name, content in render_crds().items()}


def _state_diagrams() -> dict[Path, str]:
    """Mermaid diagrams of the legal transitions, between their markers in the design document."""
    path = ROOT / "operator" / "regent" / "controller" / "DESIGN.md"
    text = path.read_text(encoding="utf-8")
    tables: dict[str, Mapping[Any, Collection[enum.Enum]]] = {
        "partitions": PARTITION_PREVIOUS_STATES,
        "replicas": REPLICA_PREVIOUS_STATES,
    }
    for name, table in tables.items():
        begin = f"<!-- generated: {name} -->\n"
        before, _, rest = text.partition(begin)
        after = rest[rest.index("<!-- end -->") :]
        text = f"{before}{begin}{_diagram(table)}{after}"
    return {path: text}


def _diagram(table: Mapping[Any, Collection[enum.Enum]]) -> str:
    edges = sorted(
        f"    {_camel(previous)} --> {_camel(target)}"
        for target, allowed in table.items()
        for previous in allowed
    )
    return "\n".join(["```mermaid", "stateDiagram-v2", *edges, "```", ""])


def _camel(state: enum.Enum) -> str:
    return "".join(word.capitalize() for word in state.name.split("_"))


def _settings() -> dict[Path, str]:
    return {ROOT / "docs" / "settings.md": render_markdown()}


_SET_BY_THE_CHART = {
    *("zookeeper", "mode", "namespaces", "cluster_name", "default_cluster"),
    *("http_host", "http_port"),
}
_NOT_IN_A_CHART = {"without_kubernetes", "controller_id"}
"""Its pods serve custom resources, and each needs an id of its own."""


def _chart_values_schema() -> dict[Path, str]:
    """The chart's schema: what it says of ``settings`` and hosts comes from the program."""
    path = ROOT / "charts" / "regent" / "values.schema.json"
    schema = json.loads(path.read_text(encoding="utf-8"))
    fields = Settings.model_json_schema()["properties"]
    schema["properties"]["settings"] = {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            name: _plain(field)
            for name, field in fields.items()
            if name not in _SET_BY_THE_CHART | _NOT_IN_A_CHART
        },
    }
    endpoint = schema["properties"]["endpoint"]["properties"]
    for place in (endpoint, endpoint["listeners"]["items"]["properties"]):
        place["advertisedHost"]["pattern"] = f"^$|{HOST_PATTERN}"
    return {path: json.dumps(schema, indent=2) + "\n"}


def _plain(field: dict[str, Any]) -> dict[str, Any]:
    """A field's schema without the title that pydantic makes up."""
    return {key: value for key, value in field.items() if key != "title"}


GENERATORS: tuple[Callable[[], dict[Path, str]], ...] = (
    _crds,
    _chart_crds,
    _settings,
    _chart_values_schema,
    _state_diagrams,
)


def main() -> int:
    """Write, or with ``--check`` report what differs; the exit status says whether all is well."""
    check = "--check" in sys.argv[1:]
    stale = 0
    for generator in GENERATORS:
        for path, content in generator().items():
            if path.is_file() and path.read_text(encoding="utf-8") == content:
                continue
            stale += 1
            print(f"{'out of date' if check else 'written'}: {path.relative_to(ROOT)}")
            if not check:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(content, encoding="utf-8")
    if check and stale:
        print("run `make generate` and commit the result", file=sys.stderr)
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
