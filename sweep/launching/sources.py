"""Launch scripts and configurations as statements: bash, YAML, JSON, TOML, Python, by their ending.

Files that a script names are read before what it states itself, as frameworks do.
"""

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from math import prod
from pathlib import Path

import yaml

from paradl.grids.reading.errors import InputError, add_place
from paradl.grids.reading.textfile import read_text
from paradl.grids.reading.yamlfile import load, read_nodes
from paradl.sweep.launching.facts import CONFIGURATIONS, Statement, load_table
from paradl.sweep.launching.python_file import Maker, read_python
from paradl.sweep.launching.shell import Script
from paradl.sweep.launching.shell_words import MOST_TEXT

MOST_FILES = 20
# A program behind a flag without value, or behind a number: `-N 4 python -u pretrain_gpt.py`.
PROGRAM = re.compile(r"\S*\.(py|sh)|(\S*/)?(python[\d.]*|torchrun|accelerate|deepspeed|bash|sh)")
FLAG = re.compile(r"--?([A-Za-z][\w.:-]*)(?:=(.*))?", re.S)
PAIR = re.compile(r"\+*([A-Za-z_][\w.]*)=(.*)", re.S)
# Of configurations: `${model.seq_length}`, `${TP:8}`, `${oc.env:TP,8}`.
INTERPOLATION = re.compile(r"\$\{(?:oc\.env:)?\.?([\w.]+)(?:[:,]([^${}]*))?\}")
FUNCTIONS: dict[str, Callable[[Iterable[float]], float]] = {
    "multiply": prod,
    "sum": sum,
    "add": sum,
}
# Words that stand for any arguments: `$@`, `${EXTRA_ARGS}`.
ARGUMENTS = re.compile(r"(?i)\$\{?(?:[@*]|\w*(?:arg|opt|extra|flag)\w*)(?:\[[@*]\])?\}?")
CALL = re.compile(r"(\w+)\((.*)\)", re.S)
ARGUMENT = re.compile(r"(\w+)=['\"]?([^,'\"]*)")
# Programs that state a configuration, which commands may start.
CONFIGURES = re.compile(r"megatron\.(bridge|core)|nemo|torchtitan|TrainingArguments|SFTConfig")
OTHER_FILES = re.compile("vocab|token|merge|data|templ")


@dataclass
class Sources:
    """What a launch script and the files that it names state; later statements replace earlier.

    programs: words that are no parameters. variables: that the script has defaults of. missing:
    files that are named and not there. doubts: conditions that were taken as false. others: words
    that stand for arguments that are not known. earlier: launches before the last one. documents:
    files that the script itself writes.
    """

    base: Path
    statements: list[Statement] = field(default_factory=list)
    programs: list[str] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    earlier: list[str] = field(default_factory=list)
    documents: dict[str, str] = field(default_factory=dict)
    files: int = 0

    def read(self, path: Path, chosen: str = "") -> None:
        """Read a file. chosen: a function of a Python file. InputError: it cannot be read."""
        self.files += 1
        if self.files > MOST_FILES:
            raise InputError(f"names more than {MOST_FILES} files", where=str(path))
        if path.suffix in (".yaml", ".yml", ".json"):
            self._add_mapping(load(path).data)
            return
        text = read_text(path, MOST_TEXT)
        with add_place(str(path)):
            if path.suffix == ".toml":
                try:
                    self._add_mapping(tomllib.loads(text))
                except (tomllib.TOMLDecodeError, RecursionError) as error:
                    raise InputError(f"TOML syntax: {error}") from None
            elif path.suffix == ".py":
                pairs, words = read_python(text, chosen)
                self.programs += words
                for key, value in pairs:
                    self._add(key, value)
            else:
                self._add_script(text)

    def _add_mapping(self, data: Mapping[str, object]) -> None:
        for key, value in flatten(data):
            self._add(key, value)

    def resolve(self) -> None:
        """Replace what values name: other values, of which the last statement counts, defaults."""
        last = {one.key: one.value for one in self.statements}

        def look_up(match: re.Match[str]) -> str:
            name, other = match.groups()
            if name in FUNCTIONS and (numbers := re.findall(r"[\d.]+", other or "")):
                value = FUNCTIONS[name](map(float, numbers))
                return str(int(value) if value == int(value) else value)
            near = (key for key in last if key == name or key.endswith(f".{name}"))
            if (same := next(near, None)) is not None:
                return str(last[same])
            if other is not None:
                self.variables[name] = other
            return match[0] if other is None else other

        for place, (key, value) in enumerate(self.statements):
            text = str(value)[: MOST_FILES**2]
            for _ in range(8 if "${" in text else 0):  # values may name values that name others
                text = INTERPOLATION.sub(look_up, text)[: MOST_FILES**2]
            if "${" in str(value):
                self.statements[place] = Statement(key, text)

    def _add(self, key: str, value: object) -> None:
        """Add a statement; what a configuration that it names states comes before it."""
        if isinstance(value, str) and (call := CALL.fullmatch(value)):  # NeMo's recipes
            for name, argument in ARGUMENT.findall(call[2]):
                self._add(name, argument)
            value = call[1]
        if key == "hostfile" and (path := find_file(self.base, str(value))):
            slots = re.findall(r"^\S+.*?slots=(\d+)", read_text(path, MOST_TEXT), re.M)
            if slots:
                self.statements.append(Statement("nnodes", len(slots)))
                self.statements.append(Statement("nproc_per_node", slots[0]))
        group = f"conf/{key}/{value}.yaml"
        if isinstance(value, str) and "\0" not in value and (self.base / group[:200]).is_file():
            self._refer(group)  # Hydra's groups: training=gpt3/5b
        if isinstance(value, str) and not isinstance(value, Maker) and not OTHER_FILES.search(key):
            folder, *names = value.split()[:MOST_FILES] or [""]
            for word in (folder, *names):
                # GPT-NeoX: `-d configs 20B.yml`
                inside = f"{folder}/{word}"
                self._refer(inside if find_file(self.base, inside) else word)
        self.statements.append(Statement(key, value))

    def _refer(self, word: str) -> None:
        """Read a configuration that is named, unless it is no name of one."""
        if not word.endswith(CONFIGURATIONS[:4]):
            return
        if word in self.documents:
            # PyYAML raises several kinds for what is no YAML or JSON.
            with suppress(yaml.YAMLError, ValueError, ArithmeticError):
                _, data = read_nodes(self.documents.pop(word).replace("\t", " "))
                self._add_mapping(data if isinstance(data, dict) else {})
        elif path := find_file(self.base, word):
            self.read(path)
        elif word not in self.missing:
            self.missing.append(word)

    def _load(self, word: str, folder: str) -> str | None:
        """Return the text of a script that another one runs in a folder; None if it is missing."""
        path = find_file(self.base / folder, word) or find_file(self.base, word)
        if path is None and word not in self.missing:
            self.missing.append(word)
        return read_text(path, MOST_TEXT) if path else None

    def _add_script(self, text: str) -> None:
        """Add the last command of a script that starts a training, and variables beside it."""
        script = Script(load=self._load)
        script.read(text)
        if not script.commands:
            script.read_functions()
        self.variables |= script.set_here
        self.doubts += script.doubts
        self.documents |= script.files
        words = script.commands[-1] if script.commands else []
        before = (" ".join(one)[:80] for one in script.commands[:-1])
        self.earlier += [text for text in before if re.search("torchrun|launch|train|tune", text)]
        for name, key in load_table("processes")["variables"].items():
            if value := script.variables.get(name):
                self._add(key, value.count(",") + 1 if "DEVICES" in name else script.show(value))
        self._add_words(words)

    def _add_words(self, words: list[str]) -> None:
        """Add the parameters of a command: --key value ..., --key=value, and key=value."""
        self.programs += words
        pairs: list[tuple[str, list[str]]] = [("", [])]
        for word in words:
            values = pairs[-1][1]
            if flag := FLAG.fullmatch(word):
                key = flag[1].replace("-", "_")
                pairs += [(key, [])] if flag[2] is None else [(key, [flag[2]]), ("", [])]
            elif (pair := PAIR.fullmatch(word)) and (values or "." in pair[1] or not pairs[-1][0]):
                pairs += [(pair[1], [pair[2]]), ("", [])]
            elif PROGRAM.fullmatch(word) or (pairs[-1][0] in ("m", "c") and values):
                pairs.append(("", [word]))
            else:
                values.append(word)
        named = {key: values[0] for key, values in pairs if values}
        # torchtitan's: a function of a module, which may lie here. Hydra's: a file without ending.
        if "config" in named and (module := named.get("module", "").replace(".", "/")):
            near = (f"{module}.py", f"torchtitan/models/{module}/config_registry.py")
            path = next(filter(None, (find_file(self.base, one) for one in near)), None)
            if path:
                self.read(path, named["config"])
            else:
                self._add("recipe", named["config"])
        if "config_path" in named and "config_name" in named:
            stem = named["config_name"].removesuffix(".yaml")
            self._refer(f"{named['config_path'].strip('/')}/{stem}.yaml")
        for key, values in pairs:
            # Further arguments, which the script leaves open, are no value.
            others = [value for value in values if ARGUMENTS.fullmatch(value)]
            kept = [value for value in values if value not in others]
            self.others += [value for value in others if value not in self.others]
            if key:
                self._add(key, " ".join(kept) if kept else True)
                continue
            for word in kept:
                self._refer(word)
                if word.endswith(".py"):
                    self._add_program(word)

    def _add_program(self, word: str) -> None:
        """Add a Python program by its name, and what it states if it is a configuration."""
        path = find_file(self.base, word)
        with suppress(InputError):  # most programs are none
            if path and CONFIGURES.search(read_text(path, MOST_TEXT)):
                self.read(path)
        self._add("program", word.rpartition("/")[2])


def find_file(base: Path, word: str) -> Path | None:
    """Find a file that a script names: also beside it, or below it if a variable says where."""
    plain = re.sub(r".*[})`]/|^\$\w+/", "", word)
    near = [base / word, base / plain, base / plain.rpartition("/")[2]]
    # A script lies in the folders of what it starts from above them.
    near += [above / word for above in base.absolute().parents[:4] if "/" in word]
    is_name = len(word) < 200 and "\0" not in word
    return next((path for path in near if is_name and path.is_file()), None)


def flatten(data: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Yield values by their keys, joined by dots; lists are values."""
    for key, value in data.items():
        path = f"{prefix}{key.lstrip('-').replace('-', '_')}"
        if isinstance(value, dict):
            yield from flatten(value, f"{path}.")
        else:
            yield path, value
