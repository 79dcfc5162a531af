"""The generated definitions: structural, complete, and the same as those in the repository."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from pydantic import Field

from regent.model.topic import MAX_PARTITIONS
from regent.resources.base import ApiModel, CustomResource
from regent.resources.broker_drain import BrokerDrain
from regent.resources.crd import HEADER, RESOURCES, crd, render_crds, write_crds
from regent.resources.kafka_topic import KafkaTopic
from regent.resources.kind import Cel
from regent.resources.partition_reassignment import PartitionReassignment
from regent.resources.schema import structural_schema

ROOT = Path(__file__).parents[3]
FORBIDDEN = {
    "$ref", "$defs", "title", "anyOf", "allOf", "oneOf", "not", "const", "examples",
    "exclusiveMinimum", "exclusiveMaximum", "uniqueItems",
}  # fmt: skip


def _nodes(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, schema
    for name, child in schema.get("properties", {}).items():
        yield from _nodes(child, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from _nodes(schema[key], f"{path}.{key}")


def _schema(definition: dict[str, Any]) -> dict[str, Any]:
    schema: dict[str, Any] = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def test_the_repository_has_what_is_generated() -> None:
    stored = {path.name: path.read_text() for path in (ROOT / "crds").iterdir()}
    assert stored == render_crds()


def test_writing(tmp_path: Path) -> None:
    written = write_crds(tmp_path / "new")
    assert {path.name: path.read_text() for path in written} == render_crds()
    assert all(path.read_text().startswith(HEADER) for path in written)


@pytest.mark.parametrize("resource", RESOURCES)
def test_schemas_are_structural(resource: type[CustomResource]) -> None:
    for path, node in _nodes(_schema(crd(resource))):
        assert not FORBIDDEN & node.keys(), path
        assert "type" in node or node.get("x-kubernetes-preserve-unknown-fields"), path
        assert node.get("default", "set") not in ("", [], {}, None), path


@pytest.mark.parametrize("resource", RESOURCES)
def test_every_field_is_described(resource: type[CustomResource]) -> None:
    schema = _schema(crd(resource))
    for part in ("spec", "status"):
        for path, node in _nodes(schema["properties"][part], part):
            if path.endswith((".items", ".additionalProperties")) and "properties" not in node:
                continue
            assert node.get("description"), path


@pytest.mark.parametrize("resource", RESOURCES)
def test_what_people_can_write_is_bounded(resource: type[CustomResource]) -> None:
    for path, node in _nodes(_schema(crd(resource))["properties"]["spec"], "spec"):
        match node.get("type"):
            case "array":
                assert "maxItems" in node, path
            case "string":
                assert "maxLength" in node or "enum" in node, path
            case "integer":
                assert {"minimum", "maximum"} <= node.keys(), path
            case "object" if "additionalProperties" in node:
                assert "maxProperties" in node, path


@pytest.mark.parametrize(
    ("resource", "columns"),
    [
        (KafkaTopic, ["Partitions", "Replicas", "URP", "Ready", "Reason", "Age"]),
        (PartitionReassignment, ["Phase", "Progress", "Ready", "Reason", "Age"]),
    ],
)
def test_printer_columns_lead_to_fields(resource: type[CustomResource], columns: list[str]) -> None:
    definition = crd(resource)
    version = definition["spec"]["versions"][0]
    paths = {path.lstrip(".") for path, _ in _nodes(_schema(definition))}
    for column in version["additionalPrinterColumns"]:
        path = column["jsonPath"].lstrip(".")
        if path.startswith("metadata") or "[?(" in path:
            continue
        assert path in paths, column
    narrow = [c["name"] for c in version["additionalPrinterColumns"] if "priority" not in c]
    assert narrow == columns


def test_as_many_partitions_can_be_declared_as_the_controller_creates() -> None:
    spec = _schema(crd(KafkaTopic))["properties"]["spec"]["properties"]
    assert spec["partitions"]["maximum"] == MAX_PARTITIONS
    assert spec["replicaAssignment"]["maxItems"] == MAX_PARTITIONS


DEFAULTS: dict[type[CustomResource], dict[str, object]] = {
    KafkaTopic: {
        "onForeignDeletion": "Alert",
        "adoptionPolicy": "Adopt",
        "managementPolicy": "Managed",
    },
    PartitionReassignment: {
        "rebalance.replicaBalancePercent": 110,
        "rebalance.leaderBalancePercent": 110,
        "rebalance.spark.imagePullPolicy": "IfNotPresent",
        "rebalance.spark.sparkVersion": "4.3.0",
        "rebalance.spark.serviceAccount": "spark",
        "rebalance.spark.driver.cores": 1,
        "rebalance.spark.driver.memory": "1g",
        "rebalance.spark.executor.cores": 1,
        "rebalance.spark.executor.memory": "1g",
        "rebalance.spark.executor.instances": 1,
        "rebalance.spark.timeoutSeconds": 1800,
        "rebalance.spark.ttlSecondsAfterFinished": 600,
        "rebalance.history.windowSeconds": 604800,
        "rebalance.history.percentile": 95,
        "rebalance.history.maxAgeSeconds": 3600,
        "approval.policy": "Manual",
        "desiredState": "Running",
        "undoWindowSeconds": 86400,
        "concurrency.perBroker": 5,
        "concurrency.total": 50,
        "concurrency.perPartitionOneByOne": False,
        "onDrift": "Stop",
        "racks": "Keep",
    },
    BrokerDrain: {
        "mode": "Replicas",
        "desiredState": "Drained",
        "racks": "Keep",
        "concurrency.perBroker": 5,
        "concurrency.total": 50,
    },
}


@pytest.mark.parametrize("resource", RESOURCES)
def test_defaults_stay_as_they_are(resource: type[CustomResource]) -> None:
    """The API server stores a default with every object, and from then on the stored value looks
    like a declared value: objects keep the former default under a later definition."""
    spec = _schema(crd(resource))["properties"]["spec"]
    found = {path[1:]: node["default"] for path, node in _nodes(spec) if "default" in node}
    assert found == DEFAULTS[resource]


@pytest.mark.parametrize("resource", RESOURCES)
def test_status_has_one_manager_and_conditions_by_type(resource: type[CustomResource]) -> None:
    status = _schema(crd(resource))["properties"]["status"]
    assert status["x-kubernetes-map-type"] == "atomic"
    conditions = status["properties"]["conditions"]
    assert conditions["x-kubernetes-list-type"] == "map"
    assert conditions["x-kubernetes-list-map-keys"] == ["type"]


class TestStructuralForm:
    def test_exclusive_bounds_become_inclusive(self) -> None:
        class Model(ApiModel):
            number: int = Field(gt=0, lt=10)

        number = structural_schema(Model)["properties"]["number"]
        assert (number["minimum"], number["maximum"]) == (1, 9)

    def test_exclusive_bounds_of_other_numbers_are_an_error(self) -> None:
        class Model(ApiModel):
            ratio: float = Field(gt=0)

        with pytest.raises(ValueError, match=r"Model\.ratio: exclusiveMinimum"):
            structural_schema(Model)

    def test_optional_means_absent_not_null(self) -> None:
        class Model(ApiModel):
            name: str | None = None

        schema = structural_schema(Model)
        assert schema["properties"]["name"] == {"type": "string"}
        assert "required" not in schema

    def test_nested_models_are_written_out_with_their_rules(self) -> None:
        class Inner(ApiModel):
            """Inner."""

            cel_rules: ClassVar[tuple[Cel, ...]] = (Cel("true", "never", field_path=".size"),)
            size: int = 1

        class Model(ApiModel):
            many: tuple[Inner, ...] = ()

        items = structural_schema(Model)["properties"]["many"]["items"]
        assert items == {
            "description": "Inner.",
            "type": "object",
            "properties": {"size": {"type": "integer", "default": 1}},
            "x-kubernetes-validations": [
                {"rule": "true", "message": "never", "fieldPath": ".size"}
            ],
        }

    def test_a_union_of_scalars_takes_anything_but_objects_and_lists(self) -> None:
        class Model(ApiModel):
            values: dict[str, str | int | bool | None] = Field(default={})

        assert structural_schema(Model)["properties"]["values"]["additionalProperties"] == {
            "nullable": True,
            "x-kubernetes-preserve-unknown-fields": True,
            "minProperties": 1,
            "maxProperties": 0,
            "minItems": 1,
            "maxItems": 0,
        }

    def test_a_union_of_shapes_is_an_error(self) -> None:
        class Model(ApiModel):
            value: str | list[str] = ""

        with pytest.raises(ValueError, match=r"Model\.value: no structural form for this union"):
            structural_schema(Model)

    def test_an_unknown_keyword_is_an_error(self) -> None:
        class Model(ApiModel):
            number: int = Field(multiple_of=2)

        with pytest.raises(ValueError, match="multipleOf"):
            structural_schema(Model)
