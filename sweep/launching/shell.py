"""Commands of a bash script: variables, arrays, here-documents, conditions, functions, scripts.

Nothing is executed. What the script does not set itself stays as it is written, `$SLURM_NNODES` or
`$(hostname)`; the environment of this process is not read. A loop runs once.
"""

import operator
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import pairwise
from pathlib import Path

from paradl.grids.models.files.expressions import fill_in
from paradl.grids.reading.errors import InputError
from paradl.grids.reading.textfile import read_text
from paradl.sweep.launching.shell_words import (
    IN_PARENTHESES,
    MOST_TEXT,
    PIECES,
    Sentence,
    find_file,
    list_statements,
    split_words,
    take_body,
)

MOST_BRANCHES, MOST_CALLS = 100, 20
TARGET = r"(?:>>?[ \t]*(\S+)[ \t]*)?"
HEREDOC = re.compile(
    rf"{TARGET}<<-?[ \t]*(['\"]?)(\w+)\2[ \t]*{TARGET}[^\n]*\n(.*?)^[ \t]*\3[ \t]*$", re.S | re.M
)
Body = list[Sentence] | str  # a function, or the text of a script
HERE = "heredoc\0"  # stands for one, before its number
REFERENCE = re.compile(
    rf"\$(?P<arithmetic>\({IN_PARENTHESES}\))|\${IN_PARENTHESES}|`[^`]*`"
    r"|\$\{(?P<body>[^{}]*)\}|\$(?P<name>\w+|[@*#])"
)
ARRAY = re.compile(r"\"?\$(?:\{(\w+)\[[@*]\]\}|([@*]))\"?")
ASSIGNMENT = re.compile(r"(\w+)(\+?)=(.*)", re.S)
# sbatch's options, as variables that Slurm sets of them.
SBATCH = re.compile(r"^#SBATCH[ \t]+([^\n#]+)", re.M)
SLURM = {
    ("--nodes", "-N"): ("SLURM_NNODES", "SLURM_JOB_NUM_NODES"),
    ("--ntasks", "-n"): ("SLURM_NTASKS", "SLURM_NPROCS"),
    ("--ntasks-per-node",): ("SLURM_NTASKS_PER_NODE",),
    ("--gpus-per-node", "--gres"): ("SLURM_GPUS_PER_NODE", "SLURM_GPUS_ON_NODE"),
}
DECLARERS = ("export", "local", "readonly", "declare", "typeset", "env", "-a", "-x", "-i", "-r")
# Commands that run a script which they name.
RUNNERS = ("bash", "sh", "source", ".", "sbatch", "srun", "mpirun", "exec", "nohup")
SCRIPTS = (".sh", ".bash", ".sbatch", ".slurm", ".env")
TESTERS = ("[", "[[", "test")
NUMBERS = {f"-{name}": getattr(operator, name) for name in ("eq", "ne", "gt", "ge", "lt", "le")}


@dataclass
class Branch:
    """An `if` or `case` that a statement stands in. subject: of a case."""

    is_taken: bool
    was_taken: bool
    subject: str | None = None

    def enter(self, holds: bool) -> None:
        """Go on to the next branch."""
        self.is_taken = holds and not self.was_taken
        self.was_taken |= self.is_taken


@dataclass
class Script:
    """What a script says. commands: words of each. set_here: variables whose value is a default of
    the script, which the environment may replace. doubts: conditions that depend on more than it.
    base: where other scripts lie; missing: those that do not. functions: their statements. The
    array `@` has the arguments.
    """

    base: Path = field(default_factory=Path)
    variables: dict[str, str] = field(default_factory=dict)
    arrays: dict[str, list[str]] = field(default_factory=dict)
    commands: list[list[str]] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    set_here: dict[str, str] = field(default_factory=dict)
    doubts: list[str] = field(default_factory=list)
    branches: list[Branch] = field(default_factory=list)
    functions: dict[str, list[Sentence]] = field(default_factory=dict)
    documents: dict[str, str] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    unset: list[str] = field(default_factory=list)
    opened: list[Path] = field(default_factory=list)
    spent: int = 0
    depth: int = 0
    # How the statement before ended, and whether it succeeded: `&&` and `||` ask.
    end: str = ""
    holds: bool = True
    in_condition: bool = False

    def read(self, text: str) -> None:
        """Read the statements of a text."""
        for options in SBATCH.findall(text):
            self._read_sbatch(options.replace("=", " ").split())

        def keep(match: re.Match[str]) -> str:
            number = str(len(self.documents))
            self.documents[number] = match[5] if match[2] else f"\0{match[5]}"
            return f" {HERE} {number} {match[1] or match[4] or ''}\n"

        self._follow(list_statements(HEREDOC.sub(keep, text)))

    def read_functions(self) -> None:
        """Read functions as they are written, where no command that is followed calls them."""
        for body in list(self.functions.values()):
            self._follow(iter(body))

    def _follow(self, statements: Iterator[Sentence]) -> None:
        """Follow statements, those of functions when they are called."""
        for words, end in statements:
            self._spend(1000)
            if words[0] == "function" or (
                end == "(" and re.fullmatch(r"[A-Za-z][\w-]*", words[-1])
            ):
                name = words[words[0] == "function" and len(words) > 1]
                self.functions[name] = list(take_body(statements, int(words[-1] == "{")))
                continue
            if {"&&": self.holds, "||": not self.holds}.get(self.end, True):
                self.holds = self._read_statement(words)
            self.end = end

    def _spend(self, amount: int) -> None:
        self.spent += amount
        if self.spent > 8 * MOST_TEXT:
            raise InputError("it grows too large", where="launch script")

    @contextmanager
    def _nest(self) -> Iterator[None]:
        """Keep arguments, and how the last statement ended, over a call."""
        outer, arguments = (self.end, self.holds), self.arrays.get("@")
        self.end, self.depth = "", self.depth + 1
        if self.depth > MOST_CALLS:
            raise InputError("calls are nested too deep", where="launch script")
        yield
        (self.end, self.holds), self.depth = outer, self.depth - 1
        self.arrays.pop("@", None)
        self.arrays |= {} if arguments is None else {"@": arguments}

    def _call(self, body: Body, arguments: list[str] | None, start: list[str]) -> None:
        """Follow a function, or a text. start: of its commands. arguments: if it has its own."""
        kept = len(self.commands)
        with self._nest():
            self.arrays |= {} if arguments is None else {"@": arguments}
            if isinstance(body, str):
                self.read(body)
            else:
                self._follow(iter(body))
        self.commands[kept:] = [start + one for one in self.commands[kept:]]

    def _print(self, text: str) -> str | None:
        """Return what commands print, of those whose output is known without running them."""
        kept, variables = len(self.commands), dict(self.variables)
        with self._nest():
            self._follow(list_statements(text))
        printed, self.commands = self.commands[kept:], self.commands[:kept]
        self.variables = variables
        match [(one[0], " ".join(w for w in one[1:] if w not in ("-n", "-e"))) for one in printed]:
            case [("echo", text)]:
                return text
            case [("echo", text), ("bc", _)] | [("expr", text)]:
                return _compute(text)
        return None

    def _read_sbatch(self, words: list[str]) -> None:
        for names, variables in SLURM.items():
            for option, value in pairwise(words):
                if option in names and (count := re.search(r"\d+$", value)):
                    self.variables |= dict.fromkeys(variables, count[0])

    def _read_statement(self, words: list[str]) -> bool:
        """Read a statement; return whether it succeeds, as all but conditions do."""
        while words and words[0] in ("then", "do", "else", "{", "}", "!", "time", "exec", "eval"):
            if words[0] == "else" and self.branches:
                self.branches[-1].enter(True)
            self.in_condition &= words[0] != "then"
            words = words[1:]
        if not words:
            return True
        first, rest = words[0], words[1:]
        if first in ("if", "elif", "case"):
            self._branch(first, rest)
            self.in_condition = first != "case"
            return bool(self.branches) and self.branches[-1].is_taken
        if self.in_condition and self.branches:  # goes on behind && or ||
            self.branches[-1] = replace(self.branches[-1], is_taken=False, was_taken=False)
            self.branches[-1].enter(self._judge(words))
            return self.branches[-1].is_taken
        if first in ("fi", "esac") and self.branches:
            self.branches.pop()
        elif first.endswith(")") and self.branches and self.branches[-1].subject is not None:
            patterns = [shlex.split(one)[0] for one in first[:-1].split("|") if one]
            subject = self.branches[-1].subject
            self.branches[-1].enter(any(fnmatchcase(subject, pattern) for pattern in patterns))
        elif all(branch.is_taken for branch in self.branches):
            if first in TESTERS:
                return self._judge(words)
            self._run(words)
        return True

    def _branch(self, word: str, condition: list[str]) -> None:
        if len(self.branches) > MOST_BRANCHES:
            raise InputError("conditions are nested too deep", where="launch script")
        outer = all(branch.is_taken for branch in self.branches)
        if word == "case":
            subject = " ".join(self.expand(condition[0])) if condition else ""
            self.branches.append(Branch(False, not outer, subject))
            return
        if word == "if":
            self.branches.append(Branch(False, not outer))
        elif not self.branches:
            return
        is_open = not self.branches[-1].was_taken
        self.branches[-1].enter(is_open and self._judge(condition))

    def _judge(self, condition: list[str]) -> bool:
        """Judge a condition; one that depends on more than the script does not hold."""
        words = [" ".join(self.expand(word)) for word in condition]
        match [word for word in words if word not in (*TESTERS, "]", "]]")]:
            case ["-z", value] | [value, "=" | "==", ""]:
                self.unset += re.findall(r"^\$\{?(\w+)", value)
                return value in ("", *condition) or value.startswith("$")
            case ["-n", value] | [value, "!=", ""]:
                return not (value == "" or value.startswith("$"))
            case [left, "=" | "==", right] if "$" not in left + right:
                return fnmatchcase(left, right)
            case [left, "!=", right] if "$" not in left + right:
                return not fnmatchcase(left, right)
            case [left, sign, right] if sign in NUMBERS and (left + right).isdecimal():
                return bool(NUMBERS[sign](int(left[:9]), int(right[:9])))
        self.doubts.append(" ".join(condition)[:80])
        return False

    def _run(self, words: list[str]) -> None:
        """Keep a command, and what it assigns, writes and calls."""
        is_sum = words[0] == "let"
        while words and words[0] in (*DECLARERS, "let"):
            words = words[1:]
        while words and (match := ASSIGNMENT.fullmatch(words[0])):
            self._assign(match[1], match[2], f"$(({match[3]}))" if is_sum else match[3])
            words = words[1:]
        expanded = [text for word in words for text in self.expand(word)]
        if not expanded or expanded[0] == ":":
            return
        first, *rest = expanded
        if HERE in expanded[:-1]:
            self._read_document(expanded)
        elif first == "for" and rest:  # a variable of several values is open
            self.variables[rest[0]] = rest[2] if len(rest) == 3 else f"${rest[0]}"
        elif first == "shift":
            count = int(rest[0][:9]) if rest and rest[0].isdecimal() else 1
            self.arrays["@"] = self.arrays.get("@", [])[count:]
        elif first == "cd" and rest and len(rest[0]) < 200 and (self.base / rest[0]).is_dir():
            self.base /= rest[0]
        elif first in self.functions:
            self._call(self.functions[first], rest, [])
        elif not self._run_file(expanded):
            self.commands.append(expanded)

    def _run_file(self, words: list[str]) -> bool:
        """Follow another script that is run; return whether it is there."""
        shares = words[0] in ("source", ".")
        found = words[:20] if words[0] in RUNNERS else words[:1]
        places = [place for place, word in enumerate(found) if word.endswith(SCRIPTS)]
        for place in places[:1] or [1] * (shares and len(words) > 1):
            word = words[place]
            # What has a place of its own on a machine may lie beside this one.
            path = find_file(self.base, re.sub("^/.*/", "", word))
            if path is None and word not in self.files:
                self.missing.append(word)
                return False
            if path and path.resolve() in self.opened:  # jobs submit themselves again
                return True
            text = read_text(path, MOST_TEXT) if path else self.files[word]
            own = (None, []) if shares else (words[place + 1 :], words[:place])
            self.opened.append(path.resolve() if path else Path())
            self._call(text, *own)
            self.opened.pop()
            return True
        return False

    def _read_document(self, words: list[str]) -> None:
        """Read a here-document as what its command takes it for."""
        place = words.index(HERE)
        number, *names = words[place + 1 :]
        text = self.documents.get(number, "")
        text = self.substitute(text[1:]) if text.startswith("\0") else text
        if names:
            self.files[names[0]] = text
        elif words[0] == "read":
            self.variables[words[place - 1]] = text
        elif words[0] == "cat":
            self.commands.append(["echo", text])
        elif words[0] in RUNNERS:
            self._call(text, None, words[:place])

    def _assign(self, name: str, adds: str, value: str) -> None:
        if value.startswith("("):
            items = [text for word in split_words(value[1:-1]) for text in self.expand(word)]
            self.arrays[name] = (self.arrays.get(name, []) if adds else []) + items
            return
        text = " ".join(self.expand(value))
        if name in self.unset:
            self.set_here[name] = text
        self.variables[name] = (self.variables.get(name, "") if adds else "") + text
        self.arrays.pop(name, None)

    def expand(self, word: str) -> list[str]:
        """Expand a word as bash would: into none, one or several."""
        if (match := ARRAY.fullmatch(word)) and (match[1] or "@") in self.arrays:
            items = self.arrays[match[1] or "@"]
            # Only quotes keep what is inside of an item together.
            return items if word[0] == '"' else [text for item in items for text in item.split()]
        words, quoted = [""], False
        for piece in PIECES.finditer(word):
            text = piece[0]
            if text[0] == "'":
                words[-1] += text[1:-1]
                quoted = True
            elif text[0] == '"' and len(text) > 1:
                words[-1] += self.substitute(re.sub(r"\\(.)", r"\1", text[1:-1], flags=re.S))
                quoted = True
            elif text[0] == "\\":
                words[-1] += text[1:].replace("\n", "")
            else:
                replaced = self.substitute(text)
                # What is not known stays one word: of `$(hostname -I | head)`, too.
                first, *others = [replaced] if replaced == text else re.split(r"\s+", replaced)
                words[-1] += first
                words += others
        return words if quoted else [text for text in words if text]

    def substitute(self, text: str) -> str:
        """Replace what the script itself sets."""
        for _ in range(5):  # defaults may stand inside of defaults
            replaced = REFERENCE.sub(self._look_up, text)
            self._spend(len(replaced))
            if replaced == text:
                break
            text = replaced
        return text

    def _look_up(self, match: re.Match[str]) -> str:
        if match["arithmetic"]:
            names = re.sub(
                r"\$\{?(\w+)\}?|\b([A-Za-z_]\w*)",
                lambda m: self._value(m[1] or m[2]) or m[0],
                match[0],
            )
            return _compute(names[3:-2]) or match[0]
        body = match["body"] or match["name"]
        if body is None:
            printed = self._print(match[0][1:-1].removeprefix("("))
            return match[0] if printed is None else printed
        if array := re.fullmatch(r"(\w+)\[[@*]\]", body):
            items = self.arrays.get(array[1])
            return match[0] if items is None else " ".join(items)
        form = re.fullmatch(r"(\w+|[@*#])(?::?([-=+?])(.*))?", body, re.S)
        if form is None:
            return match[0]
        name, sign, other = form.groups()
        value = self._value(name)
        if sign == "+":
            return other if value else ""
        if value or sign in (None, "?"):
            return match[0] if value is None else value
        other = re.sub(r"^(['\"])(.*)\1$", r"\2", other, flags=re.S)
        self.set_here[name] = other
        if sign == "=":
            self.variables[name] = other
        return other

    def _value(self, name: str) -> str | None:
        items = self.arrays.get("@")
        if items is not None and (name.isdecimal() or name in "@*#"):
            counted = str(len(items)) if name == "#" else " ".join(items)
            return (
                counted if name in "@*#" else (["$0", *items][int(name) : int(name) + 1] or [""])[0]
            )
        return self.variables.get(
            name, " ".join(self.arrays[name]) if name in self.arrays else None
        )


def _compute(text: str) -> str | None:
    """Return the value of whole numbers' arithmetic; None: it is none."""
    try:
        return str(fill_in(f"$({text.replace('/', '//')})", {}))
    except (ValueError, ArithmeticError):
        return None
