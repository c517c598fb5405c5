"""Commands of a bash script that start a training; nothing is executed.

What the script does not set itself stays as it is written, `$SLURM_NNODES` or `$(hostname)`; the
environment of this process is not read. tree-sitter's grammar of bash parses it.
"""

import posixpath
import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from tree_sitter import Node

from paradl.grids.reading.errors import InputError
from paradl.sweep.launching.shell_grammar import list_parts, parse, read_source
from paradl.sweep.launching.shell_values import calculate, judge_test, read_sbatch
from paradl.sweep.launching.shell_words import MOST_TEXT, ShellWords

MOST_WORDS = 100  # of a command, among which the program is that it starts
MOST_STATEMENTS = 20_000  # functions may call themselves
# Programs that train, and those that start them.
TRAINS = re.compile(
    "torchrun|python|deepspeed|accelerate|srun|mpirun|nemo|llamafactory|axolotl|run_"
)
# ShellWords before a script, as a text or a file, that is read in their place.
TEXTS = ("-c", "-lc", "-ec", "-xc")  # a text is behind
SHELLS = (
    *TEXTS,
    "--command",
    "bash",
    "sh",
    "sbatch",
    "ssh",
    "exec",
    "time",
    "-l",
    "-x",
    "-e",
    "-ex",
)
EDIT = re.compile(r"s([/#|,])(.*?)\1(.*?)\1g?")
KEYED = re.compile(r"(\[\w+\])=(.*)", re.S)  # an item of `declare -A`
UNKNOWN = "\0"  # printed by a command that is not known
ROOMS = ("docker", "podman", "singularity", "apptainer", "enroot")  # containers


class ReturnError(Exception):
    """A function returns."""


@dataclass
class Script(ShellWords):
    """What a script says. commands: words of each that starts a training.

    load: returns the text of a script by its name and folder, None if it is not there. files: that
    it writes. doubts: conditions that depend on more than the script, and are taken as false.
    """

    load: Callable[[str, str], str | None] = lambda name, folder: None
    functions: dict[str, Node] = field(default_factory=dict)
    commands: list[list[str]] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    doubts: list[str] = field(default_factory=list)
    # ShellWords in front of each command, such as srun's; what echo prints.
    prefix: list[str] = field(default_factory=list)
    printed: list[str] | None = None
    folder: str = ""
    unset: set[str] = field(default_factory=set)  # variables that are taken not to be
    open: list[str] = field(default_factory=list)  # texts that are being read
    statements: int = 0

    def read(self, text: str) -> None:
        """Read the statements of a text. InputError: it is too long, or makes too much."""
        if len(text) > MOST_TEXT:
            raise InputError("too long for a launch script", where="launch script")
        self.variables |= read_sbatch(text)
        if text in self.open:  # jobs submit themselves again
            return
        self.open.append(text)
        try:
            self._visit(parse(text))
        except RecursionError:
            raise InputError("statements are nested too deep", where="launch script") from None
        finally:
            self.open.pop()

    def read_functions(self) -> None:
        """Read functions, where no command that is read calls them."""
        for body in [*self.functions.values()]:
            self._call(body, [], None)

    def _visit(self, node: Node) -> bool | None:
        """Read a statement; return whether it succeeds; None of a command that is not known."""
        self.statements += 1
        if self.statements > MOST_STATEMENTS:
            raise InputError("too many statements", where="launch script")
        parts, text = list_parts(node), read_source(node)
        match node.type:
            case "command":
                return self._run(parts)
            case "variable_assignment":
                self._assign(parts, text)
            case "test_command":
                return self._judge([*self._list_tokens(node)][1:-1], text)
            case "compound_statement" if text.startswith("(("):
                return self._judge([self.calculate(text[2:-2]) or "$", "!=", "0"], text)
            case "negated_command":
                return not self._holds(parts[0])
            case "list":
                is_open = (self._visit(parts[0]) is not False) is (node.children[1].type == "&&")
                return self._visit(parts[1]) if is_open else True
            case "if_statement":
                self._choose(node)
            case "case_statement":
                self._select(self.write(parts[0]), parts[1:])
            case "for_statement":
                for word in self.expand_all(parts[1:-1]):
                    self.variables[read_source(parts[0])] = word
                    self._visit(parts[-1])
            case "while_statement" | "c_style_for_statement":  # once
                if node.type[0] == "c" or self._holds(parts[0]):
                    self._visit(parts[-1])
            case "function_definition":
                self.functions[read_source(parts[0])] = parts[-1]
            case "redirected_statement":
                return self._redirect(parts[0], parts[1:])
            case kind if not kind.endswith(("expression", "word", "variable_name")):
                return self._visit_all(parts)
        return True

    def _visit_all(self, nodes: Iterable[Node]) -> bool | None:
        """Read statements; return whether the last one succeeds."""
        holds: bool | None = True
        for node in nodes:
            holds = self._visit(node)
        return holds

    def _choose(self, node: Node) -> None:
        """Read the branch of an `if` whose condition holds."""
        for clause in (node, *(part for part in node.children if part.type[:2] == "el")):
            words = [child.type for child in clause.children]
            start = words.index("then") if "then" in words else 0
            # Of several commands the last one decides.
            conditions = [one for one in clause.children[1:start] if one.is_named]
            self._visit_all(conditions[:-1])
            if all(map(self._holds, conditions[-1:])):
                body = clause.children[start + 1 :]
                self._visit_all(one for one in body if one.is_named and one.type[:2] != "el")
                return

    def _select(self, subject: str, items: list[Node]) -> None:
        """Read the item of a `case` whose pattern matches."""
        for item in items:
            patterns = item.children_by_field_name("value")
            if any(fnmatchcase(subject, self.write(pattern)) for pattern in patterns):
                self._visit_all(list_parts(item)[len(patterns) :])
                return

    def _holds(self, node: Node) -> bool:
        """Read the condition of an `if`; commands that are not known do not hold."""
        holds = self._visit(node)
        return self._judge(["$"], read_source(node)) if holds is None else holds

    def _judge(self, words: list[str], text: str) -> bool:
        """Judge a test; one that depends on more than the script is a doubt, and does not hold."""
        self.unset.update(re.findall(r"(?:^| )-z \$\{?(\w+)", " ".join(words)))
        if (holds := judge_test(words)) is None:
            self.doubts.append(self.show(text)[:80])
        return bool(holds)

    def _list_tokens(self, node: Node) -> Iterator[str]:
        """Yield the words of a test, operators among them."""
        for child in node.children:
            nested = child.type.endswith("_expression")
            yield from self._list_tokens(child) if nested else [self.write(child)]

    def _redirect(self, body: Node, redirects: list[Node]) -> bool | None:
        """Read a statement, and what it writes: a here-document, or what echo prints."""
        inner = {part.type: part for redirect in redirects for part in list_parts(redirect)}
        targets = [
            part for part in (*redirects, *inner.values()) if read_source(part).startswith(">")
        ]
        text = None
        if "heredoc_body" in inner:
            is_raw = read_source(inner["heredoc_start"])[:1] in "'\"\\"
            text = (read_source if is_raw else self.write)(inner["heredoc_body"])
            piped = (part for part in inner.values() if read_source(part).startswith("|"))
            words = read_source(next(piped, body)).strip("| ").split()
            if words[:1] == ["read"]:
                self.variables[words[-1]] = text
            if not targets and {*words} & {*SHELLS, "cat"}:
                self._print(text.strip()) if words[0] == "cat" else self.read(text)
                return True
        elif targets:
            is_piped = any(child.type == "|" for child in body.children)
            text = self._filter(list_parts(body) if is_piped else [body])
        if text is None or not targets:
            return self._visit(body)
        name = "".join(map(self.write, list_parts(targets[0])[-1:]))
        self.files[self.show(name)] = text
        return True

    def _filter(self, commands: list[Node]) -> str | None:
        """Return what `echo`, or `sed s/A/B/ file | sed s/C/D/`, prints; None of other commands."""
        text = None
        for first, *words in filter(None, map(self._list_words, map(list_parts, commands))):
            if first == "echo":
                text = " ".join(words)
            elif first not in ("sed", "cat"):
                return None
            for word in words if first != "echo" else ():
                if not (word.startswith("-") or EDIT.fullmatch(word)):
                    text = self._load(word)
            for match in filter(None, map(EDIT.fullmatch, words)):
                text = text and text.replace(match[2], match[3])
        return text

    def _list_words(self, parts: Iterable[Node]) -> list[str]:
        """Expand the words of a command."""
        others = ("variable_assignment", "file_redirect", "herestring_redirect")
        kept = (part for part in parts if part.type not in others)
        return self.expand_all(x.children[0] if x.type == "command_name" else x for x in kept)

    def _assign(self, parts: list[Node], text: str) -> None:
        name, values = read_source(parts[0]), parts[1:]
        adds = text.startswith(f"{name}+=")
        if values and values[0].type == "array":
            items = self.arrays.get(name, []) if adds else []
            self.arrays[name] = items + self.expand_all(list_parts(values[0]))
            keyed = (KEYED.fullmatch(item) for item in self.arrays[name])
            self.variables |= {f"{name}{match[1]}": match[2] for match in keyed if match}
        else:
            before = self.variables.get(name, "") if adds else ""
            self.variables[name] = before + " ".join(self.expand_all(values))
            self.arrays.pop(name, None)
            if name in self.unset:
                self.set_here[name] = self.variables[name]

    def _run(self, parts: list[Node]) -> bool | None:
        """Run what is known of a command; keep others. Return what a test says; None: no test."""
        self._visit_all(part for part in parts if part.type == "variable_assignment")
        words = self._list_words(parts)
        match words:
            case ["source" | ".", name, *_]:
                self._call(self._load(name) or "", self.prefix, self.arguments, name)
            case ["eval", *rest]:
                self.read(" ".join(rest))
            case ["shift", *count] if self.arguments:
                del self.arguments[: int(count[0]) if count and count[0].isdecimal() else 1]
            case ["return", *_] if self.arguments is not None:
                raise ReturnError
            case ["test", *rest]:
                return self._judge(rest, " ".join(words))
            case ["true" | ":" | "false"]:
                return words != ["false"]
            case ["echo", *rest]:
                self._print(" ".join(word for word in rest if word not in ("-n", "-e")))
            case ["printf", "-v", name, "%s " | "%q ", *rest]:
                self.variables[name] = shlex.join(rest)
            case ["expr", *rest]:
                self._print(calculate(" ".join(rest)) or UNKNOWN)
            case ["bc", *_] if self.printed:
                self.printed[-1] = calculate(self.printed[-1]) or UNKNOWN
            case ["let", *rest]:
                for name, _, terms in (word.partition("=") for word in rest):
                    self.variables[name] = self.calculate(terms) or terms
            case ["dirname", name]:
                self._print(posixpath.dirname(name) or ".")
            case ["readlink" | "realpath", *_, name]:
                self._print(name)
            case ["pwd"]:
                self._print(".")
            case ["read", "-ra" | "-a", name]:
                here = [part for part in parts if part.type == "herestring_redirect"]
                self.arrays[name] = [w for part in here for w in self.write(part)[3:].split()]
            case ["cd", *rest]:
                self.folder = posixpath.join(self.folder, *rest[-1:])
            case [name, *rest] if name in self.functions:
                self._call(self.functions[name], self.prefix, rest)
            case _:
                self._start(words)
        return None

    def _load(self, name: str) -> str | None:
        return self.files.get(self.show(name)) or self.load(name, self.folder)

    def _print(self, text: str) -> None:
        if self.printed is not None:
            self.printed.append(text)

    def _start(self, words: list[str]) -> None:
        """Keep a command that starts a training; a script that it runs is read in its place."""
        for place, word in enumerate(words[:MOST_WORDS]):
            before = words[max(place - 1, 0) : place]
            is_text = " " in word and {*before, words[0]} & {*SHELLS, "pdsh"}
            is_file = word.endswith((".sh", ".bash", ".sbatch", ".slurm"))
            # A flag at the start of a line goes on with the line before.
            flat = re.sub(r"\s*\n\s*(?=--[a-z])", " ", word)
            text = flat if is_text else self._load(word) if is_file else None
            if text is not None:
                start = words[:place]
                start = start[: next((n for n, w in enumerate(start) if w in ROOMS), place)]
                while start and start[-1] in SHELLS:
                    start.pop()
                if {"sbatch", "srun"} & {*words[:place]}:
                    text += f"\n#SBATCH {' '.join(start)}"
                # Behind a text comes its own name.
                arguments = words[place + 1 + (words[place - 1] in TEXTS) :]
                return self._call(text, [*self.prefix, *start], arguments, word if is_file else "")
        self._print(UNKNOWN)
        if TRAINS.search(" ".join(words[:MOST_WORDS])):
            kept = [*self.prefix, *words]
            self.commands.append([*map(self.show, kept)])
        return None

    def _call(
        self, body: str | Node, prefix: list[str], arguments: list[str] | None, name: str = ""
    ) -> None:
        """Read a text, or a function, with arguments of its own. name: of a script."""
        outer = self.prefix, self.arguments, self.folder, self.name
        self.prefix, self.arguments, self.name = prefix, arguments, name or self.name
        with suppress(ReturnError):
            self.read(body) if isinstance(body, str) else self._visit(body)
        self.prefix, self.arguments, self.folder, self.name = outer

    def capture(self, node: Node, text: str) -> str:
        """Return what functions and echo print in `$(...)`; its text if it is not known."""
        outer, folder, count = self.printed, self.folder, len(self.commands)
        self.printed = []
        self._visit_all(list_parts(node))
        printed, self.printed, self.folder = self.printed, outer, folder
        del self.commands[count:]
        is_known = printed and UNKNOWN not in printed
        return "\n".join(printed) if is_known else self.hide(text)
