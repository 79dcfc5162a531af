"""From pydantic models to the structural OpenAPI v3 schemas of Kubernetes.

A structural schema has no ``$ref``, no ``title``, no ``anyOf`` with null and no numeric
``exclusiveMinimum``; pydantic emits all of these. So its schema is rewritten node by node. Whatever
the rewriting does not know is an error: a silently dropped bound would be a hole in the validation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from regent.resources.base import ApiModel
from regent.resources.kind import Cel

Schema = dict[str, Any]

_KEPT_KEYWORDS: Final = (
    "description",
    "type",
    "format",
    "enum",
    "pattern",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "default",
    "nullable",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-validations",
    "x-kubernetes-preserve-unknown-fields",
)
_REWRITTEN_KEYWORDS: Final = frozenset(
    {
        "$ref",
        "$defs",
        "title",
        "anyOf",
        "allOf",
        "const",
        "properties",
        "required",
        "items",
        "additionalProperties",
        "exclusiveMinimum",
        "exclusiveMaximum",
    }
)
_ANY_SCALAR: Final[Schema] = {
    "x-kubernetes-preserve-unknown-fields": True,
    "minProperties": 1,
    "maxProperties": 0,
    "minItems": 1,
    "maxItems": 0,
}
"""A structural schema cannot say "one of these scalars". It can say any value, and then bounds that
no object and no list meets; to scalars they do not apply."""

_SCALARS: Final = frozenset({"string", "integer", "number", "boolean"})


def structural_schema(model: type[ApiModel]) -> Schema:
    """The structural OpenAPI v3 schema of a model, references resolved in place.

    Raises:
        ValueError: If the model uses a keyword or a union that has no structural form.
    """
    raw = model.model_json_schema(by_alias=True, mode="validation")
    definitions: Mapping[str, Schema] = raw.get("$defs", {})
    return _Rewriter(definitions, _rules_by_title(model)).rewrite(raw, path=model.__name__)


class _Rewriter:
    """Rewrites one JSON schema. Holds what every node needs: definitions and rules by title."""

    def __init__(
        self, definitions: Mapping[str, Schema], rules: Mapping[str, tuple[Cel, ...]]
    ) -> None:
        self._definitions = definitions
        self._rules = rules

    def rewrite(self, node: Schema, *, path: str) -> Schema:
        node = self._resolve(node, path=path)
        unknown = node.keys() - _REWRITTEN_KEYWORDS - set(_KEPT_KEYWORDS)
        if unknown:
            raise ValueError(f"{path}: no structural form for {sorted(unknown)}")
        schema: Schema = {key: node[key] for key in _KEPT_KEYWORDS if key in node}
        if schema.get("default") in ("", [], {}):
            # The API server would write it into every object. Absent means the same to the model.
            del schema["default"]
        if "const" in node:
            schema["enum"] = [node["const"]]
        self._convert_exclusive_bounds(node, schema, path=path)
        self._add_children(node, schema, path=path)
        rules = self._rules.get(node.get("title", ""), ()) if "properties" in node else ()
        if rules:
            schema["x-kubernetes-validations"] = [rule.to_api() for rule in rules]
        return schema

    def _resolve(self, node: Schema, *, path: str) -> Schema:
        """Follow references and fold unions; keywords beside a reference win over its target's."""
        if "$ref" in node:
            target = self._definitions[node["$ref"].removeprefix("#/$defs/")]
            beside = {key: value for key, value in node.items() if key != "$ref"}
            return self._resolve({**target, **beside}, path=path)
        if "anyOf" in node:
            branches = [branch for branch in node["anyOf"] if branch.get("type") != "null"]
            beside = {key: value for key, value in node.items() if key != "anyOf"}
            if len(branches) == 1:
                # Optional: absent rather than null, and None is no default for the API server.
                if beside.get("default", ...) is None:
                    beside.pop("default")
                return self._resolve({**branches[0], **beside}, path=path)
            if all(branch.get("type") in _SCALARS for branch in branches):
                nullable = {"nullable": True} if len(branches) < len(node["anyOf"]) else {}
                return {**beside, **nullable, **_ANY_SCALAR}
            raise ValueError(f"{path}: no structural form for this union")
        return node

    def _convert_exclusive_bounds(self, node: Schema, schema: Schema, *, path: str) -> None:
        for exclusive, inclusive, step in (
            ("exclusiveMinimum", "minimum", 1),
            ("exclusiveMaximum", "maximum", -1),
        ):
            if exclusive in node:
                if node.get("type") != "integer":
                    raise ValueError(f"{path}: {exclusive} has a structural form for integers only")
                schema[inclusive] = node[exclusive] + step

    def _add_children(self, node: Schema, schema: Schema, *, path: str) -> None:
        if "items" in node:
            schema["items"] = self.rewrite(node["items"], path=f"{path}[]")
        if isinstance(node.get("additionalProperties"), dict):
            schema["additionalProperties"] = self.rewrite(
                node["additionalProperties"], path=f"{path}{{}}"
            )
        if "required" in node:
            schema["required"] = list(node["required"])
        if "properties" in node:
            schema["properties"] = {
                name: self.rewrite(child, path=f"{path}.{name}")
                for name, child in node["properties"].items()
            }


def _rules_by_title(model: type[ApiModel]) -> dict[str, tuple[Cel, ...]]:
    """CEL rules of the model and of the models it is made of, by the title pydantic gives them."""
    rules: dict[str, tuple[Cel, ...]] = {}
    pending: list[Any] = [model]
    seen: set[int] = set()
    while pending:
        annotation = pending.pop()
        if id(annotation) in seen:
            continue
        seen.add(id(annotation))
        pending.extend(getattr(annotation, "__args__", ()))
        if isinstance(annotation, type) and issubclass(annotation, ApiModel):
            rules[annotation.__name__] = annotation.cel_rules
            pending.extend(field.annotation for field in annotation.model_fields.values())
    return rules
