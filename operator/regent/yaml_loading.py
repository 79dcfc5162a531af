"""YAML of files that people write: the same as PyYAML's safe loader, and stricter."""

from __future__ import annotations

from typing import Any

import yaml


class _Loader(yaml.SafeLoader):
    """Refuses a mapping that has a key twice. YAML forbids it; PyYAML takes the last one."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if (key.tag, key.value) in seen:
                raise yaml.constructor.ConstructorError(
                    problem=f"{key.value!r} is there twice; keep one of them"
                )
            seen.add((key.tag, key.value))
        return super().construct_mapping(node, deep)


def load_yaml(text: str) -> Any:
    """The only document of a text.

    Raises:
        yaml.YAMLError: It is something else, is nested deeply, or has a key twice.
        ValueError: A value cannot be, such as the 31st of February.
    """
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe one
    except RecursionError as error:
        raise yaml.YAMLError("it is nested too deeply") from error
