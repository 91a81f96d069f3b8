"""A mapping of the fleet file with a fixed set of keys: unknown ones are errors, missing ones too."""

from __future__ import annotations

import math
from collections.abc import Iterator

import yaml

from policies.fleet_checks.problems import Path, quote, suggestion
from policies.fleet_checks.values import Form, Reader, W, kind_of, name_form


class Table:
    """One mapping. Getters take a key; a key that is absent gives the default and no error."""

    def __init__(self, reader: Reader, path: Path, node: yaml.Node, known: tuple[str, ...]) -> None:
        self.reader = reader
        self.path = path
        self.line = node.start_mark.line + 1
        self.nodes: dict[str, yaml.Node] = {}
        self.readable = isinstance(node, yaml.MappingNode)
        reader.problems.lines.setdefault(path, self.line)
        if not isinstance(node, yaml.MappingNode):
            found = f"`key: value` lines ({', '.join(known)})"
            reader.wrong(path, "type.mapping", found, node, f"write e.g. {{{known[0]}: ...}}")
            return
        for key, value in node.value:
            name = str(key.value) if isinstance(key, yaml.ScalarNode) else ""
            if not name or name == "<<" or name in self.nodes:
                continue  # reported when the text was composed
            reader.mark((*path, name), key)
            if name not in known:
                reader.problems.add(
                    (*path, name),
                    "key.unknown",
                    f"unknown key {quote(name)}, expected one of: {', '.join(known)}",
                    suggestion(name, known),
                )
                continue
            self.nodes[name] = value

    def __contains__(self, key: str) -> bool:
        return key in self.nodes

    def at(self, key: str) -> Path:
        """The path of a key."""
        return (*self.path, key)

    def need(self, key: str, example: str) -> bool:
        """True when the key is there; otherwise records that it is missing, unless there is no mapping at all."""
        if key in self.nodes:
            return True
        if not self.readable:
            return False
        self.reader.problems.add(
            self.path, "key.missing", f"the key {quote(key)} is missing, expected one", f"add {example}"
        )
        return False

    def text(self, key: str) -> str | None:
        """One line of text that is not empty."""
        if key not in self.nodes:
            return None
        value = self.reader.text(self.at(key), self.nodes[key])
        node = self.nodes[key]
        if isinstance(node, yaml.ScalarNode) and not str(node.value).strip() and kind_of(node) != "nothing":
            self.reader.problems.add(self.at(key), "text.empty", "empty, expected text", "write it or remove the key")
        return value

    def matching(self, key: str, form: Form) -> str | None:
        """Text that matches as a whole."""
        if key not in self.nodes:
            return None
        return self.reader.matching(self.at(key), self.nodes[key], form)

    def name(self, key: str) -> str | None:
        """A name. Whether it exists is checked later, when all are known."""
        return self.matching(key, name_form)

    def names(self, key: str) -> tuple[str, ...]:
        """A list of names."""
        return self.texts(key, name_form)

    def texts(self, key: str, form: Form) -> tuple[str, ...]:
        """A list of texts that match as a whole."""
        if key not in self.nodes:
            return ()
        return self.reader.texts(
            self.at(key), self.nodes[key], lambda path, node: self.reader.matching(path, node, form)
        )

    def word(self, key: str, words: tuple[W, ...], code: str) -> W | None:
        """One of a few words."""
        return self.reader.word(self.at(key), self.nodes[key], words, code) if key in self.nodes else None

    def whole(self, key: str, low: int, high: int, default: int) -> int:
        """An int in [low, high]."""
        if key not in self.nodes:
            return default
        return self.reader.whole(self.at(key), self.nodes[key], low, high, default)

    def duration(self, key: str, default_s: float, low_s: float = 0.001, high_s: float = math.inf) -> float:
        """Seconds."""
        if key not in self.nodes:
            return default_s
        return self.reader.duration(self.at(key), self.nodes[key], default_s, low_s, high_s)

    def table(self, key: str, known: tuple[str, ...]) -> Table | None:
        """The mapping below a key."""
        if key not in self.nodes:
            return None
        return Table(self.reader, self.at(key), self.nodes[key], known)

    def named(self, key: str, noun: str, form: Form = name_form) -> Iterator[Entry]:
        """The `NAME: ...` entries below a key, each with its own name."""
        node = self.nodes.get(key)
        if node is None:
            return
        path = self.at(key)
        if not isinstance(node, yaml.MappingNode):
            self.reader.wrong(
                path, "type.mapping", f"`name: ...` lines, one a {noun}", node, f"write the {noun} below, indented"
            )
            return
        seen: set[str] = set()
        for name_node, value in self.reader.not_too_many(path, list(node.value)):
            name = str(name_node.value) if isinstance(name_node, yaml.ScalarNode) else ""
            if not name or name == "<<" or name in seen:
                continue
            seen.add(name)
            self.reader.matching((*path, name), name_node, form)
            yield Entry(name, (*path, name), value)


class Entry:
    """One `NAME: value` of a mapping with free names."""

    def __init__(self, name: str, path: Path, node: yaml.Node) -> None:
        self.name = name
        self.path = path
        self.node = node

    def table(self, reader: Reader, known: tuple[str, ...]) -> Table:
        """The value as a mapping with fixed keys."""
        return Table(reader, self.path, self.node, known)
