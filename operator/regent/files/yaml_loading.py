"""YAML of files that people write: the same as PyYAML's safe loader, and stricter."""

from __future__ import annotations

from itertools import chain
from typing import Any, Final

import yaml

VALUES_MAX: Final = 100_000

_TEXT_LENGTH: Final = 100
"""A longer text counts as several values."""


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
        yaml.YAMLError: It is something else, is nested deeply, has a key twice, or grows by
            references (``*name``) to more than ``VALUES_MAX`` values or without an end.
        ValueError: A value cannot be, such as the 31st of February.
    """
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        _count(node, {})
        return loader.construct_document(node)
    except RecursionError as error:
        raise yaml.YAMLError("it is nested too deeply") from error
    finally:
        loader.dispose()


def _count(node: yaml.Node, known: dict[yaml.Node, int | None]) -> int:
    """Values of a node, those behind references each time. A few lines of references to references
    are billions for whoever looks at all of them."""
    if isinstance(node, yaml.ScalarNode):
        return 1 + len(node.value) // _TEXT_LENGTH
    if node in known:
        count = known[node]
        if count is None:
            raise yaml.YAMLError("a reference (*name) leads to what it is in")
        return count
    known[node] = None
    parts = chain(*node.value) if isinstance(node, yaml.MappingNode) else node.value
    total = 1
    for part in parts:
        total += _count(part, known)
        if total > VALUES_MAX:
            raise yaml.YAMLError(f"it has more than {VALUES_MAX:,} values, references included")
    known[node] = total
    return total
