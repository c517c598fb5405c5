"""Commands of a bash script: variables, arrays, here-documents and conditions; nothing is executed.

What the script does not set itself stays as it is written, `$SLURM_NNODES` or `$(hostname)`; the
environment of this process is not read. A loop runs once, a function where it is written.
"""

import operator
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import pairwise

from paradl.grids.models.files.expressions import fill_in
from paradl.grids.reading.errors import InputError

MOST_BRANCHES = 100
MOST_TEXT = 2**20  # characters of a script, and of all that variables make of it
IN_PARENTHESES = r"\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)"
PIECES = re.compile(
    rf"""(?P<gap>[ \t\r]+|\\\r?\n|[12&]?>>?(?:&[12]|[ \t]*[^\s;&|()]+)?)
    |(?P<comment>(?<![^\s;(])\#[^\n]*)
    |(?P<end>\n|;;|;|&&|\|\||\||&(?![>\d]))
    |(?P<parenthesis>[()])
    |(?P<piece>'[^']*'|"(?:\\.|[^"\\])*"|\${IN_PARENTHESES}|\$\{{[^}}]*\}}+|\$\w+|`[^`]*`|\\.
        |[^\s;&|()\\'"`$\#]+|.)""",
    re.VERBOSE | re.DOTALL,
)
TARGET = r"(?:>>?[ \t]*(\S+)[ \t]*)?"
HEREDOC = re.compile(
    rf"{TARGET}<<-?[ \t]*(['\"]?)(\w+)\2[ \t]*{TARGET}[^\n]*\n(.*?)^[ \t]*\3[ \t]*$", re.S | re.M
)
REFERENCE = re.compile(
    rf"\$(?P<arithmetic>\({IN_PARENTHESES}\))|\${IN_PARENTHESES}|`[^`]*`"
    r"|\$\{(?P<body>[^{}]*)\}|\$(?P<name>\w+)"
)
ARRAY = re.compile(r"\"?\$\{(\w+)\[[@*]\]\}\"?")
ASSIGNMENT = re.compile(r"(\w+)(\+?)=(.*)", re.S)
# sbatch's options, as variables that Slurm sets of them.
SBATCH = re.compile(r"^#SBATCH[ \t]+([^\n#]+)", re.M)
SLURM = {
    ("--nodes", "-N"): ("SLURM_NNODES", "SLURM_JOB_NUM_NODES"),
    ("--ntasks-per-node",): ("SLURM_NTASKS_PER_NODE",),
    ("--gpus-per-node", "--gres"): ("SLURM_GPUS_PER_NODE", "SLURM_GPUS_ON_NODE"),
}
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
    """

    variables: dict[str, str] = field(default_factory=dict)
    arrays: dict[str, list[str]] = field(default_factory=dict)
    commands: list[list[str]] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    set_here: dict[str, str] = field(default_factory=dict)
    doubts: list[str] = field(default_factory=list)
    branches: list[Branch] = field(default_factory=list)
    spent: int = 0
    # How the statement before ended, and whether it succeeded: `&&` and `||` ask.
    end: str = ""
    holds: bool = True
    in_condition: bool = False

    def read(self, text: str) -> None:
        """Read the statements of a text."""
        for options in SBATCH.findall(text):
            self._read_sbatch(options.replace("=", " ").split())
        documents: list[str] = []

        def keep(match: re.Match[str]) -> str:
            documents.append(match[5] if match[2] else f"\0{match[5]}")
            return f" heredoc {len(documents) - 1} {match[1] or match[4] or ''}\n"

        for words, end in list_statements(HEREDOC.sub(keep, text)):
            if {"&&": self.holds, "||": not self.holds}.get(self.end, True):
                self.holds = self._read_statement(words, documents)
            self.end = end

    def _read_sbatch(self, words: list[str]) -> None:
        for names, variables in SLURM.items():
            for option, value in pairwise(words):
                if option in names and (count := re.search(r"\d+$", value)):
                    self.variables |= dict.fromkeys(variables, count[0])

    def _read_statement(self, words: list[str], documents: list[str]) -> bool:
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
            self._run(words, documents)
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
            case ["-z", value]:
                return value in ("", *condition) or value.startswith("$")
            case ["-n", value]:
                return not (value == "" or value.startswith("$"))
            case [left, "=" | "==", right] if "$" not in left + right:
                return fnmatchcase(left, right)
            case [left, "!=", right] if "$" not in left + right:
                return not fnmatchcase(left, right)
            case [left, sign, right] if sign in NUMBERS and (left + right).isdecimal():
                return bool(NUMBERS[sign](int(left[:9]), int(right[:9])))
        self.doubts.append(" ".join(condition)[:80])
        return False

    def _run(self, words: list[str], documents: list[str]) -> None:
        """Keep a command, and what it assigns and writes."""
        while words and words[0] in ("export", "local", "readonly", "declare", "-a", "-x", "-i"):
            words = words[1:]
        while words and (match := ASSIGNMENT.fullmatch(words[0])):
            self._assign(match[1], match[2], match[3])
            words = words[1:]
        if not words:
            return
        expanded = [text for word in words for text in self.expand(word)]
        if "heredoc" in expanded[:-2]:
            number, name = expanded[expanded.index("heredoc") + 1 :][:2]
            text = documents[int(number)]
            self.files[name] = self.substitute(text[1:]) if text.startswith("\0") else text
            return
        if expanded[:1] != [":"]:
            self.commands.append(expanded)

    def _assign(self, name: str, adds: str, value: str) -> None:
        if value.startswith("("):
            items = [text for word in split_words(value[1:-1]) for text in self.expand(word)]
            self.arrays[name] = (self.arrays.get(name, []) if adds else []) + items
            return
        text = " ".join(self.expand(value))
        self.variables[name] = (self.variables.get(name, "") if adds else "") + text
        self.arrays.pop(name, None)

    def expand(self, word: str) -> list[str]:
        """Expand a word as bash would: into none, one or several."""
        if (match := ARRAY.fullmatch(word)) and match[1] in self.arrays:
            items = self.arrays[match[1]]
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
            self.spent += len(replaced)
            if self.spent > 8 * MOST_TEXT:
                raise InputError("variables grow too large", where="launch script")
            if replaced == text:
                break
            text = replaced
        return text

    def _look_up(self, match: re.Match[str]) -> str:
        if match["arithmetic"]:
            names = re.sub(r"\$?\b([A-Za-z_]\w*)\b", lambda m: self._value(m[1]) or m[0], match[0])
            try:
                return str(fill_in(f"$({names[3:-2].replace('/', '//')})", {}))
            except (ValueError, ArithmeticError):
                return match[0]
        body = match["body"] or match["name"]
        if body is None:
            return match[0]
        if array := re.fullmatch(r"(\w+)\[[@*]\]", body):
            items = self.arrays.get(array[1])
            return match[0] if items is None else " ".join(items)
        form = re.fullmatch(r"(\w+)(?::?([-=+])(.*))?", body, re.S)
        if form is None:
            return match[0]
        name, sign, other = form.groups()
        value = self._value(name)
        if sign == "+":
            return other if value else ""
        if value or sign is None:
            return match[0] if value is None else value
        other = re.sub(r"^(['\"])(.*)\1$", r"\2", other, flags=re.S)
        self.set_here[name] = other
        if sign == "=":
            self.variables[name] = other
        return other

    def _value(self, name: str) -> str | None:
        return self.variables.get(
            name, " ".join(self.arrays[name]) if name in self.arrays else None
        )


def list_statements(text: str) -> Iterator[tuple[list[str], str]]:
    """Yield the words of each statement, with their quotes, and its end; an array is one word."""
    if len(text) > MOST_TEXT:
        raise InputError("too long for a launch script", where="launch script")
    words: list[str] = []
    word = ""
    inside = 0  # the parentheses of an array
    for piece in PIECES.finditer(text):
        kind, found = piece.lastgroup, piece[0]
        if inside:
            inside += (found == "(") - (found == ")")
            word += " " if kind in ("gap", "comment") or found == "\n" else found
            continue
        if kind == "piece":
            word += found
        elif found == "(" and re.fullmatch(r"\w+\+?=", word):
            word, inside = word + found, 1
        else:
            if found == "|" and words[:1] == [] and word and not word.startswith("["):
                word += found  # patterns of a case
                continue
            is_pattern = found == ")" and not words and word
            words += [word + found] if is_pattern else [word] if word else []
            word = ""
            if (kind == "end" or is_pattern or found in "()") and words:
                yield words, found
                words = []
    words += [word] if word else []
    if words:
        yield words, ""


def split_words(text: str) -> list[str]:
    """Split a text into words, with their quotes."""
    return [word for words, _ in list_statements(text) for word in words]
