"""YAML as a person types it into a small file: plain values, without anchors, aliases and tags, every key once."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import yaml


class PlainLoader(yaml.SafeLoader):
    """Refuses what is not plain with the mark of its place."""

    def fetch_anchor(self) -> None:
        """Refuse `&name`."""
        raise self._refused("an anchor")

    def fetch_alias(self) -> None:
        """Refuse `*name`."""
        raise self._refused("an alias")

    def fetch_tag(self) -> None:
        """Refuse `!tag`."""
        raise self._refused("a tag")

    def _refused(self, what: str) -> yaml.MarkedYAMLError:
        return yaml.MarkedYAMLError(problem=f"{what}, expected plain values", problem_mark=self.get_mark())

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """A mapping whose keys all differ."""
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in seen:
                problem = f"`{key.value}` twice, expected it once"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
            seen.add(str(key.value))
        return super().construct_mapping(node, deep)
