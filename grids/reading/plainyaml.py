"""Plain YAML: mappings with names as keys, lists, texts and numbers.

YAML 1.1, as PyYAML reads it, takes "1e9" for a text (it wants a dot and a sign), 1:30 for 90, 010
for 8, and silently takes the last of two equal keys. Here 1e9 is a number, 1:30 and 010 are texts,
and repeated keys are refused. So are tags, other keys, control characters, and aliases that expand
too far (600 bytes of them can fill any memory).
"""

import re
from collections.abc import Hashable
from typing import Any

import yaml

from paradl.grids.reading.errors import shorten

# The most hostile files of these sizes take PyYAML one second.
MOST_BYTES = 500_000
MOST_NODES = 30_000  # with aliases expanded

DEEPEST = 100  # levels; reading time grows with their square
MOST_DIGITS = 400
FLOAT = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)[eE][-+]?[0-9]+$")
# Numbers to the bases 60 and 8, which are slips here: a range, and digits filled up with zeros.
OTHER_BASES = re.compile(r".*:.*|[-+]?0[0-7_]+")
# Control characters except tabs and line ends, and halves of surrogate pairs.
NO_TEXT = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff]")

TEXT = "tag:yaml.org,2002:str"
NAMES = (TEXT, "tag:yaml.org,2002:merge")
NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")


def read_nodes(text: str) -> tuple[yaml.Node | None, object]:
    """Return the nodes of a document and their data; YAMLError, ValueError: what is wrong."""
    loader = _Loader(text)
    root = loader.get_single_node()
    return root, None if root is None else loader.construct_object(root, deep=True)


class _Loader(yaml.SafeLoader):
    """Safe YAML where 1e9 is a number; anything else that is not plain is an error."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0
        self._nodes = 0  # so far, with aliases expanded
        self._sizes: dict[yaml.Node, int] = {}  # the same for each complete part

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Return the next node; error if it is not plain or the document is too large."""
        parser: Any = self  # the stubs have no events
        event, before = parser.peek_event(), self._nodes
        if getattr(event, "tag", None) is not None:
            raise _make_error("expected a plain value, got a tag", event.start_mark)
        self._depth += 1
        if self._depth > DEEPEST:
            raise _make_error(f"nested deeper than {DEEPEST} levels", event.start_mark)
        node = super().compose_node(parent, index)
        assert node is not None
        self._depth -= 1
        if isinstance(event, yaml.AliasEvent) and node not in self._sizes:
            raise _make_error("an alias refers to a part that contains it", event.start_mark)
        self._nodes += self._sizes.get(node, 1)
        if self._nodes > MOST_NODES:
            raise _make_error(f"more than {MOST_NODES:,} values", event.start_mark)
        self._sizes.setdefault(node, self._nodes - before)
        if isinstance(node, yaml.ScalarNode):
            if odd := NO_TEXT.search(node.value):
                raise _make_error(f"not a text character: {shorten(odd[0])}", node.start_mark)
            if node.tag in NUMBERS and len(node.value) > MOST_DIGITS:
                raise _make_error(f"a number of {len(node.value):,} characters", node.start_mark)
        if node.tag in NUMBERS and OTHER_BASES.fullmatch(node.value):
            node.tag = TEXT
        return node

    def construct_mapping(
        self, node: yaml.MappingNode, deep: bool = False
    ) -> dict[Hashable, object]:
        """Return the mapping; error if a key is no name or is repeated."""
        names: set[str] = set()
        for key, _ in node.value:
            if key.tag not in NAMES:
                advice = "quote it; lists are in brackets, such as [1, 64]"
                raise _make_error(f"expected a name as a key; {advice}", key.start_mark)
            if key.value in names:
                raise _make_error(f"the key {shorten(key.value)} is repeated", key.start_mark)
            names.add(key.value)
        return super().construct_mapping(node, deep)


_Loader.add_implicit_resolver("tag:yaml.org,2002:float", FLOAT, list("-+.0123456789"))


class _Dumper(yaml.SafeDumper):
    """Quotes texts that our reader, unlike YAML 1.1, would take for numbers."""


_Dumper.add_implicit_resolver("tag:yaml.org,2002:float", FLOAT, list("-+.0123456789"))


def write_plain(value: object, **options: Any) -> str:
    """Write a value as YAML that `read_nodes` reads as the same. options: of `yaml.dump`."""
    text: str = yaml.dump(value, None, _Dumper, sort_keys=False, **options)
    return text


def write_flow(value: object) -> str:
    """Write a value as YAML on one line."""
    # In a list, since YAML ends a plain value by itself with an end-of-document mark. Uncut, since
    # readers do not join lines.
    return write_plain([value], default_flow_style=True, width=10**9).strip()[1:-1]


def _make_error(problem: str, mark: Any) -> yaml.YAMLError:
    """Return the error with its place in the text."""
    return yaml.constructor.ConstructorError(None, None, problem, mark)
