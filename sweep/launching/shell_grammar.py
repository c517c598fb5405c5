"""The syntax tree of a bash script, by tree-sitter's grammar."""

import re
from functools import cache

import tree_sitter_bash
from tree_sitter import Language, Node, Parser


def parse(text: str) -> Node:
    """Return the tree of a script; what is no bash is a node of its own there."""
    # The grammar takes the second name of `a/$B/$C` for a command; braces help it.
    braced = re.sub(r"(?<!\\)\$([A-Za-z_]\w*)", r"${\1}", text.replace("\r", ""))
    return _make_parser().parse(braced.encode()).root_node


@cache
def _make_parser() -> Parser:
    return Parser(Language(tree_sitter_bash.language()))


def list_parts(node: Node) -> list[Node]:
    """List the parts of a node, without punctuation, keywords and comments."""
    return [child for child in node.named_children if child.type != "comment"]


def read_source(node: Node) -> str:
    """Return the source of a node."""
    return (node.text or b"").decode(errors="replace")


def unescape(source: bytes) -> str:
    """Return a source without backslashes and the ends of lines that they hide."""
    return re.sub(r"\\(.)", r"\1", source.decode(errors="replace").replace("\\\n", ""), flags=re.S)
