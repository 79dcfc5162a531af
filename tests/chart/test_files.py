"""The chart's files: definitions, schema, values and README agree."""

from __future__ import annotations

import json

import yaml

from regent.resources.crd import render_crds
from tests.support.helm_chart import CHART


def test_the_chart_carries_the_generated_definitions() -> None:
    carried = {path.name: path.read_text() for path in (CHART / "files" / "crds").iterdir()}
    assert carried == render_crds()


def test_the_schema_knows_every_value_and_no_other() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert schema["properties"].keys() - {"global"} == values.keys()


def test_the_readme_names_every_value() -> None:
    readme = (CHART / "README.md").read_text()
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert [name for name in values if f"`{name}" not in readme] == []
