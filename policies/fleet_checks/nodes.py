"""Fleet text -> YAML nodes with line marks, safe against hostile text.

Nothing is ever constructed from a tag: the text is only composed, and every explicit tag is an error.
"""

from __future__ import annotations

import yaml

from policies.fleet_checks.problems import Problems, quote

max_bytes = 256 * 1024
max_depth = 24
max_aliases = 64
max_nodes = 20_000  # after aliases are written out

tree_hint = "a fleet file is plain: hosts, services, knobs, a few levels deep"


class Limit(yaml.YAMLError):
    """The text is YAML, but of a kind that a fleet file never needs."""

    def __init__(self, line: int, code: str, message: str, hint: str) -> None:
        super().__init__(message)
        self.line = line
        self.code = code
        self.message = message
        self.hint = hint


class Composer(yaml.SafeLoader):
    """Composes nodes and stops at the first sign of a bomb, before any of it is expanded."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.depth = 0
        self.aliases = 0
        self.nodes = 0
        self.sizes: dict[int, int] = {}  # id of a finished node -> nodes in it with aliases written out
        self.open_anchors: set[str] = set()

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """One node with everything below it.

        Raises: Limit.
        """
        event = self.peek_event()  # type: ignore[no-untyped-call]
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent):
            self._count_alias(str(event.anchor), line)
        elif getattr(event, "tag", None) is not None:
            raise Limit(
                line,
                "yaml.tag",
                f"the tag {quote(str(event.tag))} is not read here, expected a plain value",
                "remove the tag; write text in quotes and numbers bare",
            )
        self.nodes += 1
        if self.nodes > max_nodes:
            raise Limit(line, "yaml.size", f"expected at most {max_nodes} values, found more", tree_hint)
        self.depth += 1
        if self.depth > max_depth:
            raise Limit(line, "yaml.depth", f"expected at most {max_depth} levels, found more", tree_hint)
        anchor = None if isinstance(event, yaml.AliasEvent) else event.anchor
        if anchor is not None:
            self.open_anchors.add(anchor)
        node = super().compose_node(parent, index)
        if anchor is not None:
            self.open_anchors.discard(anchor)
        self.depth -= 1
        if node is not None:
            self._count_size(node, line)
        return node

    def _count_alias(self, anchor: str, line: int) -> None:
        self.aliases += 1
        if anchor in self.open_anchors:
            raise Limit(
                line,
                "yaml.alias",
                f"the alias {quote('*' + anchor)} stands inside itself, expected a value with an end",
                "write it out",
            )
        if self.aliases > max_aliases:
            raise Limit(
                line, "yaml.alias", f"expected at most {max_aliases} aliases, found more", "write the values out"
            )

    def _count_size(self, node: yaml.Node, line: int) -> None:
        if id(node) in self.sizes:
            return
        size = 1
        if isinstance(node, yaml.SequenceNode):
            size += sum(self.sizes.get(id(child), 1) for child in node.value)
        elif isinstance(node, yaml.MappingNode):
            size += sum(self.sizes.get(id(k), 1) + self.sizes.get(id(v), 1) for k, v in node.value)
        if size > max_nodes:
            message = f"expected at most {max_nodes} values once aliases are written out, found more"
            raise Limit(line, "yaml.size", message, tree_hint)
        self.sizes[id(node)] = size


def compose(text: str, problems: Problems) -> yaml.MappingNode | None:
    """The top mapping of the only document, or None with the reason in `problems`."""
    if len(text.encode("utf-8", errors="surrogatepass")) > max_bytes:
        problems.add_line(
            1,
            "file.too_large",
            f"the file is too large, expected at most {max_bytes} bytes (256 KiB)",
            "a fleet file is written by people; check that this is the right file",
        )
        return None
    try:
        loader = Composer(text)
        try:
            root = loader.get_single_node()
        finally:
            loader.dispose()
    except Limit as error:
        problems.add_line(error.line, error.code, error.message, error.hint)
        return None
    except (yaml.YAMLError, ValueError, OverflowError) as error:  # ValueError: "\UFFFFFFFF" is no character
        _add_syntax(error, text, problems)
        return None
    if root is None:
        problems.add_line(1, "file.empty", "the file is empty, expected a fleet", "start with `version: 1`")
        return None
    _check_keys(root, problems)
    if not isinstance(root, yaml.MappingNode):
        problems.add_line(
            root.start_mark.line + 1,
            "type.mapping",
            "expected `key: value` lines at the top of the file",
            "start with `version: 1`",
        )
        return None
    return root


def _add_syntax(error: Exception, text: str, problems: Problems) -> None:
    if isinstance(error, yaml.reader.ReaderError):
        line = text.count("\n", 0, error.position) + 1
        problems.add_line(
            line,
            "yaml.character",
            f"the character {quote(text[error.position : error.position + 1])} may not stand in a fleet file",
            "remove it; it is probably invisible in your editor",
        )
        return
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    line = min(mark.line + 1, text.count("\n") + 1) if mark is not None else 1
    reason = str(getattr(error, "problem", None) or error)
    if "'\\t'" in reason:
        problems.add_line(line, "yaml.tab", "a tab stands where spaces are expected", "indent with spaces, two a level")
        return
    if "single document" in str(getattr(error, "context", "")):
        problems.add_line(
            line, "yaml.documents", "a second document begins here, expected one", "remove the `---` line"
        )
        return
    problems.add_line(
        line,
        "yaml.syntax",
        f"expected yaml, and this is not: {reason}",
        "look at this line and the one above: brackets and quotes must close, and `key: value` needs the blank",
    )


def _check_keys(root: yaml.Node, problems: Problems) -> None:
    """Keys must be plain words and stand once. YAML itself would let the last one win in silence."""
    seen: set[int] = set()
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            waiting.extend(node.value)
        elif isinstance(node, yaml.MappingNode):
            first: dict[str, int] = {}
            for key, value in node.value:
                waiting.append(value)
                line = key.start_mark.line + 1
                if not isinstance(key, yaml.ScalarNode) or not key.value:
                    problems.add_line(line, "type.key", "expected a word as a key", "write `name: value`")
                elif key.value == "<<" and key.style is None:
                    problems.add_line(
                        line,
                        "yaml.merge",
                        "the merge key '<<' is not read here, expected every key written out",
                        "copy the keys; an alias for a whole value (`on: *hosts`) is allowed",
                    )
                elif key.value in first:
                    problems.add_line(
                        line,
                        "yaml.duplicate_key",
                        f"the key {quote(key.value)} stands twice, first in line {first[key.value]}, expected once",
                        "remove one of the two or rename it",
                    )
                else:
                    first[key.value] = line
