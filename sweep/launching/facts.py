"""Facts of a training run by our names, and tables of how frameworks state them: `tables/*.yaml`.

A parameter states one fact: `sequence_parallel: sequence? off` is a switch that is off unless it is
stated, `!` negates one, `auto` switches on one with `~`, `$` is a text, and others are numbers or
choices. A case states ours by several of theirs, both ways: the first one that holds. What neither
does is in `conversions.py`. A script is read, and written, by the same table.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from paradl.grids.entries.software import SoftwareName
from paradl.grids.reading.errors import shorten
from paradl.grids.reading.yamlfile import load

Facts = dict[str, Any]

CONFIGURATIONS = (".yaml", ".yml", ".json", ".toml", ".py")
TABLES = Path(__file__).parent / "tables"
ROW = re.compile(r"(\w+)([?!~$]?)(?: (.+))?")
SWITCHES: dict[str, Mapping[Any, object]] = {
    "?": {True: True, False: False},
    "!": {True: False, False: True},
    "~": {True: "auto", False: False},
}
# As configurations spell truth and absence.
TRUTH = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0", "none", "null"), False),
}
NOTHING = ("none", "null", "auto", "gpu", "~", "")  # gpu: as many processes as there are
VARIABLE = re.compile(r"\$\{?(\w+)|\$\(|`")
ANY = "any"  # in a case: whatever is stated


class Flag(NamedTuple):
    """What a parameter of a framework states. words: its words by our values; None: any number."""

    name: str
    usual: object = None
    words: Mapping[Any, object] | None = None
    is_text: bool = False

    @classmethod
    def from_row(cls, row: object) -> "Flag":
        """Make the parameter of a row of a table."""
        if isinstance(row, dict):
            words = row["words"]
            pairs = words if isinstance(words, dict) else {word: word for word in words}
            return cls(row["name"], row.get("usual"), pairs)
        match = ROW.fullmatch(str(row))
        assert match, row
        name, sign, usual = match.groups()
        words = SWITCHES.get(sign)
        if usual is None or sign == "$":
            return cls(name, usual, words, sign == "$")
        return cls(name, TRUTH[usual] if words else _read_number(usual), words)

    def read(self, value: object) -> object:
        """Return our value; None for none. ValueError: it is no value of the parameter."""
        text = _plain(value)
        if self.words is not None:
            if True in self.words and text in TRUTH:
                return TRUTH[text] is bool(self.words[True])
            for ours, theirs in self.words.items():
                if text == _plain(theirs):
                    return ours
        if text in NOTHING or (self.is_text and TRUTH.get(text) is False and text != "0"):
            return None
        if self.words is not None or (isinstance(value, bool) and not self.is_text):
            raise ValueError
        if self.is_text:
            return value if isinstance(value, list) else str(value).strip().strip("'\"")
        return _read_number(text)


def _read_number(text: str) -> float:
    """Return a number, whole if it can be. ValueError: it is none, or enormous."""
    number = float(text.replace("_", "")) if len(text) < 40 else float("nan")
    if not abs(number) < 2**53:
        raise ValueError
    return int(number) if number.is_integer() else number


def _plain(value: object) -> str:
    text = str(value).strip().strip("'\"").lower().removeprefix("torch.")
    text = text.replace("bfloat16", "bf16").replace("float32", "fp32").replace("float16", "fp16")
    return str(load_table("fields")["same"].get(text, text))


class Statement(NamedTuple):
    """A parameter as a script states it. key: dots between sections, underscores in names."""

    key: str
    value: object

    @property
    def shown(self) -> str:
        """The parameter and its value, for lists of what was not understood."""
        return self.key if self.value is True else f"{self.key}={shorten(self.value)}"


class Correspondence(NamedTuple):
    """Facts of ours that several of theirs state. also: what is written with them."""

    ours: Facts
    theirs: Facts
    also: Facts
    is_written: bool

    def holds(self, facts: Facts, wanted: Facts) -> bool:
        """Return whether facts are as wanted; absent ones are false, or nothing."""
        return all(
            bool(facts.get(name)) if value == ANY else (facts.get(name) or None) == (value or None)
            for name, value in wanted.items()
        )


@dataclass(frozen=True)
class Framework:
    """A framework: its table. written: parameters that launch lines have; rows: all it reads.

    stack: the rules of `kernels.search.stacks` about its layouts. signs: of its scripts. notes: on
    facts that no prediction counts. cleared: facts that are written even if they are nothing, as
    all usual values are then, since a recipe of its own may have others.
    """

    name: str
    title: str
    software: SoftwareName
    stack: str
    signs: str
    conversion: str
    written: Mapping[str, Flag]
    rows: Mapping[str, Flag]
    cases: Sequence[Correspondence]
    notes: Mapping[str, str]
    cleared: Sequence[str]

    def find_row(self, key: str) -> Flag | None:
        """Return the row of a key, or of its end behind a dot."""
        parts = key.split(".")
        ends = (".".join(parts[place:]) for place in range(len(parts)))
        return next((self.rows[end] for end in ends if end in self.rows), None)

    def describe_default(self, name: str) -> str:
        """Describe the parameter of a fact with the framework's own value."""
        rows = ((key, row) for key, row in self.rows.items() if row.name == name)
        key, row = next((key, row) for key, row in rows if row.usual is not None)
        return f"{key.rpartition('.')[2]} {row.words[row.usual] if row.words else row.usual}"

    def list_parameters(self, facts: Facts) -> dict[str, object]:
        """List parameters: numbers always, others if their usual value differs.

        Where parameters share a fact, the first states it.
        """
        stated, parameters = set[str](), dict[str, object]()
        for key, row in self.written.items():
            value = facts.get(row.name)
            is_number = row.words is None and not row.is_text
            is_silent = value == row.usual and not (is_number or self.cleared)
            if value is None and row.name in self.cleared:
                parameters[key] = None
            if row.name in stated or value is None or is_silent:
                continue
            if row.words is None or value in row.words:
                stated.add(row.name)
                parameters[key] = value if row.words is None else row.words[value]
        return parameters

    def fold(self, facts: Facts) -> Facts:
        """Return facts with those of cases: ours, by theirs."""
        found = Facts()
        for case in self.cases:
            if not {*case.ours} <= {*found} and case.holds(facts, case.theirs):
                found |= case.ours
        return facts | found

    def unfold(self, facts: Facts) -> Facts:
        """Return facts with those of cases: theirs, by ours."""
        found, settled = dict(facts), set[str]()
        for case in self.cases:
            is_open = case.is_written and not {*case.ours} & settled
            if is_open and all(facts.get(name) == value for name, value in case.ours.items()):
                settled |= {*case.ours}
                found |= {k: v for k, v in case.theirs.items() if v != ANY} | case.also
        return found


@cache
def load_table(name: str) -> dict[str, Any]:
    """Load a table as it is."""
    return load(TABLES / f"{name}.yaml").data


@cache
def load_framework(name: str) -> Framework:
    """Load a framework's table, with those that it extends and those that it only reads."""
    data = load_table(name)
    own = {key: Flag.from_row(row) for key, row in data.get("parameters", {}).items()}
    extended = [load_framework(one) for one in data.get("extends", ())]
    read = [load_framework(one) for one in data.get("reads", ())]
    written, rows = dict(own), dict(own)
    rows |= {key: Flag.from_row(row) for key, row in data.get("read", {}).items()}
    cases = [
        Correspondence(row["ours"], row["theirs"], row.get("also", {}), not row.get("read"))
        for row in data.get("cases", ())
    ]
    # Cases of its own about a fact replace those of others.
    names = {name for case in cases for name in case.ours}
    for one in (*extended, *read):
        rows |= {key: row for key, row in one.rows.items() if key not in rows}
        cases += [case for case in one.cases if not {*case.ours} & names]
    for one in extended:
        written |= {key: row for key, row in one.written.items() if key not in written}
    return Framework(
        name,
        data["title"],
        data.get("software", "ddp"),
        data.get("stack", ""),
        data.get("signs", "(?!)"),
        data.get("conversion", "megatron"),
        written,
        rows,
        cases,
        {k: v for one in (*extended, *read) for k, v in one.notes.items()} | data.get("notes", {}),
        data.get("cleared", ()),
    )
