"""Words of a bash script: variables, arrays and arguments in place of their names."""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field

from tree_sitter import Node

from paradl.grids.reading.errors import InputError
from paradl.sweep.launching import shell_values
from paradl.sweep.launching.shell_grammar import list_parts, read_source, unescape

MOST_TEXT = 2**20  # characters of a script, and an eighth of what variables may make of it
FORM = re.compile(r"\$\{?(\w+|#)(\[\w+\])?(:?[-=+?]|,,|\^\^|%%?|##?|//?)?(.*?)\}?", re.S)
NAME = re.compile(r"\$?\{?(\b[A-Za-z_]\w*|(?<=[${])\d)(\[\w+\])?\}?")
BRACES = re.compile(r"\$\{(\w+)\}")
HIDDEN = re.compile(r"\$\{_(\d+)_\}")
EXPANSIONS = ("simple_expansion", "expansion", "command_substitution", "arithmetic_expansion")


@dataclass
class ShellWords(ABC):
    """What words of a script stand for. arguments: of a function. name: of the script.

    set_here: variables whose value is a default of the script, which the environment may replace.
    """

    variables: dict[str, str] = field(default_factory=dict)
    arrays: dict[str, list[str]] = field(default_factory=dict)
    set_here: dict[str, str] = field(default_factory=dict)
    arguments: list[str] | None = None
    name: str = ""
    room: int = 8 * MOST_TEXT
    hidden: list[str] = field(default_factory=list)

    @abstractmethod
    def capture(self, node: Node, text: str) -> str:
        """Return what the statements of `$(...)` print; its text if it is not known."""

    def expand_all(self, nodes: Iterable[Node]) -> list[str]:
        """Expand words as bash would."""
        return [text for node in nodes for text in self._expand(node)]

    def _expand(self, node: Node) -> list[str]:
        """Expand a word as bash would: into none, one or several."""
        parts = list_parts(node)
        # Only quotes keep what is inside of an item together.
        if (
            node.type == "string"
            and len(parts) == 1
            and read_source(node) == f'"{read_source(parts[0])}"'
        ):
            items = self._find_items(read_source(parts[0]))
            return [self.write(parts[0])] if items is None else items
        words, quoted = [""], False
        for part in node.children if node.type == "concatenation" else [node]:
            text = self.write(part)
            # What is not known stays one word: of `$(hostname -I | head)`, too.
            is_split = part.type in EXPANSIONS and text != read_source(part)
            first, *others = re.split(r"\s+", text) if is_split else [text]
            words[-1] += first
            words += others
            quoted |= part.type in ("string", "raw_string")
        return words if quoted else [text for text in words if text]

    def write(self, node: Node) -> str:
        """Write the text of a part of a word, expanded, and without its quotes."""
        text = read_source(node)
        match node.type:
            case "raw_string" | "ansi_c_string":
                return text[text.index("'") + 1 : -1]
            case "string":
                text = self._fill(node, 1, len(node.text or b"") - 1)
            case "arithmetic_expansion":
                text = self.calculate(text[3:-2]) or self.hide(text)
            case "command_substitution":
                # The grammar takes sums inside of `${A:=...}` for commands.
                number = self.calculate(text[3:-2]) if text.startswith("$((") else None
                text = number or self.capture(node, text)
            case "simple_expansion" | "expansion":
                # The grammar counts blanks in strings to what follows them.
                place = text.index("$")
                text = unescape(text[:place].encode()) + self._look_up(node, text[place:], place)
            case _:
                text = self._fill(node, 0, len(node.text or b""))
        self.room -= len(text)
        if self.room < 0:
            raise InputError("variables grow too large", where="launch script")
        return text

    def _fill(self, node: Node, start: int, end: int) -> str:
        """Write the source of a node from start to end, with what is expanded in it."""
        source, text = node.text or b"", ""
        for child in list_parts(node):
            place = child.start_byte - node.start_byte
            if place >= start and not child.type.endswith("_content"):
                text += unescape(source[start:place]) + self.write(child)
                start = child.end_byte - node.start_byte
        return text + unescape(source[start:end])

    def calculate(self, text: str) -> str | None:
        """Return the value of an expression; None if it is not known."""
        found = NAME.sub(lambda name: self._find(name[1], name[2] or "") or name[0], text)
        return shell_values.calculate(found)

    def _find_items(self, text: str) -> list[str] | None:
        """Return the items of `${A[@]}` or `$@`; None of others."""
        match = re.fullmatch(r"\$\{([#!]?)(\w+)\[[@*]\]\}", text)
        if match is None:
            return self.arguments if text in ("$@", "$*") else None
        items = self.arrays.get(match[2])
        if items is None or not match[1]:
            return items
        return [str(len(items))] if match[1] == "#" else [*map(str, range(len(items)))]

    def _look_up(self, node: Node, text: str, place: int) -> str:
        """Return the value of `$A`, `${A:-...}` and the like; the text if it is not known."""
        if (items := self._find_items(text)) is not None:
            return " ".join(items)
        indexed = re.sub(r"(?<=\[)\$\{?(\w+)\}?(?=\])", lambda m: self._find(m[1]) or m[0], text)
        form = FORM.fullmatch(indexed)
        if form is None or (form[4] and not form[3]):
            return text
        value = self._find(name := form[1], form[2] or "")
        found, sign = text if value is None else value, form[3] or "?"
        other = self._fill(node, place + form.end(3), len(node.text or b"") - 1) if form[3] else ""
        match sign[-1]:
            case "?":
                return f"${{{name}}}" if value is None and form[3] else found
            case "+":
                return other if value else ""
            case "-" | "=":
                if value:
                    return value
                self.set_here[name] = self.show(other)
                self.variables |= {name: other} if sign[-1] == "=" else {}
                return other
        return found if value is None else shell_values.edit(value, sign, other)

    def hide(self, text: str) -> str:
        """Return a name for a text that stays one word, such as `$(hostname -I | head)`."""
        shown = self.show(text)
        self.hidden += [] if shown in self.hidden else [shown]
        return f"${{_{self.hidden.index(shown)}_}}"

    def show(self, text: str) -> str:
        """Return a text with what is not known as the script has it."""
        text = HIDDEN.sub(lambda match: self.hidden[int(match[1])], text)
        return BRACES.sub(r"$\1", text)

    def _find(self, name: str, place: str = "") -> str | None:
        """Return the value of a variable, an item of an array, or an argument of a function."""
        if name in ("0", "BASH_SOURCE"):
            return self.name or None
        if name == "#":
            return None if self.arguments is None else str(len(self.arguments))
        items, index = self.arrays.get(name), int(place[1:-1]) if place[1:-1].isdecimal() else 0
        if name.isdecimal():
            items, index = self.arguments, int(name) - 1
        if items is None or f"{name}{place}" in self.variables:
            return self.variables.get(f"{name}{place}")
        return items[index] if 0 <= index < len(items) else None
