"""Input files as typing errors, broken disks and attackers would leave them, and what reads them.

Mutations are pure functions of the bytes and a random generator, so a seed determines a corpus.
"""

import json
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any

from paradl.grids.entries.names import CATALOGUE, Kind, list_names
from paradl.grids.graphs.graphfile import find_graph
from paradl.grids.library import find
from paradl.grids.models.files.template import is_required, list_families, load_family
from paradl.grids.reading.errors import InputError
from paradl.grids.reading.yamlfile import load
from paradl.grids.spec import read_spec
from paradl.sweep.importing.networks.source import import_network
from paradl.sweep.measured.runs import read_runs

ROOT = Path(__file__).parents[2]

MOST_MESSAGE = 1000  # characters
MOST_LINES = 8
MOST_SECONDS = 2.0  # processor time, so that other processes do not count

Reader = Callable[[Path], object]

MOST_CHANGES = 3  # to one file

# Texts that replace a value, a line or a few bytes.
NASTY = (
    *("", "0", "-1", "1", "0.5", "1e308", "-1e308", "1e-320", "1e999", ".inf", "-.inf", ".nan"),
    *("9" * 400, "9" * 5000, "0x" + "f" * 4000, "1" * 19, str(2**53 + 1), str(2**40), "007"),
    *("null", "~", "true", "no", "2020-01-01", "2020-99-99", "59:59:59", "1_000", "٣", "²"),
    *("[]", "{}", "[[]]", "{a: {}}", "- ", "? [a]", "? {a: b}", "&a [*a]", "*a", "<<: {a: 1}"),
    *("!!timestamp x", "!!int x", "!!python/name:os.system", "!!binary AA", "!!set {a}", "! 3"),
    *("[" * 1000, "{a: " * 500, "- " * 500, "a" * 100_000, "x" * 500, "|" * 1000, "," * 1000),
    *("\x00", "\x1b[31m", '"\\ud800"', '"\\0"', "\ufeff", "\u2028", "\r", "\r\n\r\n", "\t", "\\"),
    *("/dev/zero", "/", ".", "~nobody/x.yaml", "./none.net", "../" * 100, "%s", "{0}", "$HOME"),
    *("25", "40 s", "3 parsec", "1e999999 GB/s", "12.5 GB/s", "-9 us", "1 B", "1e300 TFLOP/s"),
    *("pow2", "{pow2: [3, 100]}", "{range: [1, 1e9]}", "{linspace: [1, 2, 1e9]}", "targets"),
    *("resnet", "{name: resnet, stages: [1e9]}", "{name: resnet, stages: [400]}", "same", "best"),
    *("CONV", "1x1", "0x0x0x0", "999999999x999999999x999999999", "NAME|1", "data+filter:group=8"),
)

# Whole files: a few hundred bytes that expand to 9**8 values, and deep nesting.
HOSTILE = (
    b"a0: &a0 [x, x, x]\n"
    + b"".join(b"a%d: &a%d [%s]\n" % (n, n, b"*a%d," % (n - 1) * 9) for n in range(1, 9)),
    b"a0: &a0 {x: 1}\n"
    + b"".join(b"a%d: &a%d {<<: [%s]}\n" % (n, n, b"*a%d," % (n - 1) * 9) for n in range(1, 9)),
    *(part * 30_000 for part in (b"[", b"{a: ", b"- ", b"? ", b"!", b"|", b"x|1\n", b"\x00")),
    *(b"", b"\n" * 100_000, b"#" * 400_000, b"a: " + b"9:" * 100_000, b"9" * 400_000),
)

# Values that replace a part of a mapping or a list.
PARTS: tuple[object, ...] = (
    *(None, True, 0, -1, 1, 2**53, 2**60, 10**30, 0.5, 1e308, -1e308, 1e-320, "", "x", "x" * 1000),
    *([], [[]], {}, {"a": 1}, {"": {}}, [1] * 1000, ["x"] * 100, "12.5 GB/s", "40 s", "9" * 400),
    *({"pow2": [1, 64]}, {"range": [1, 10**7]}, {"name": "resnet", "stages": [3]}, "/dev/zero"),
)


def mutate(content: bytes, random: Random) -> bytes:
    """Change the content one to MOST_CHANGES times, or replace it by a hostile one."""
    if random.random() < 0.01:
        return random.choice(HOSTILE)
    for _ in range(random.randint(1, MOST_CHANGES)):
        content = random.choice(CHANGES)(content, random)
    return content


def mutate_part(data: object, random: Random) -> object:
    """Replace one part of plain data, anywhere in it, by another value or form."""
    if isinstance(data, dict) and data and random.random() < 0.8:
        key = random.choice(list(data))
        return _changed_mapping(data, key, random)
    if isinstance(data, list) and data and random.random() < 0.8:
        index = random.randrange(len(data))
        kept = [[], [data[index]] * 2, [mutate_part(data[index], random)]]
        return [*data[:index], *random.choices(kept, (1, 1, 8))[0], *data[index + 1 :]]
    return random.choice((*PARTS, *NASTY))


def _changed_mapping(data: dict[str, object], key: str, random: Random) -> dict[str, object]:
    others = {name: value for name, value in data.items() if name != key}
    match random.randrange(10):
        case 0:
            return others
        case 1:
            return others | {f"{key}{random.choice('sx.0')}": data[key]}
        case 2:
            return data | {random.choice(NASTY): data[key]}
    return data | {key: mutate_part(data[key], random)}


def _flip_byte(content: bytes, random: Random) -> bytes:
    at = random.randrange(max(len(content), 1))
    return content[:at] + bytes([random.randrange(256)]) + content[at + 1 :]


def _delete(content: bytes, random: Random) -> bytes:
    start, stop = _span(content, random)
    return content[:start] + content[stop:]


def _double(content: bytes, random: Random) -> bytes:
    start, stop = _span(content, random)
    return content[:stop] + content[start:stop] * random.choice((1, 2, 50)) + content[stop:]


def _insert(content: bytes, random: Random) -> bytes:
    at = random.randrange(len(content) + 1)
    return content[:at] + _nasty(random) + content[at:]


def _swap_lines(content: bytes, random: Random) -> bytes:
    lines = content.splitlines(keepends=True)
    if len(lines) > 1:
        i, j = random.sample(range(len(lines)), 2)
        lines[i], lines[j] = lines[j], lines[i]
    return b"".join(lines)


def _change_line(content: bytes, random: Random) -> bytes:
    lines = content.splitlines(keepends=True) or [b""]
    at = random.randrange(len(lines))
    lines[at] = random.choice((b"", lines[at] * 2, _nasty(random) + b"\n"))
    return b"".join(lines)


def _replace_token(content: bytes, random: Random) -> bytes:
    """Replace one word, number or field: most files then still have the right form."""
    separator = random.choice((b" ", b",", b"|", b": ", b"x", b"\n"))
    tokens = content.split(separator)
    tokens[random.randrange(len(tokens))] = _nasty(random)
    return separator.join(tokens)


def _cut_off(content: bytes, random: Random) -> bytes:
    return content[: random.randrange(len(content) + 1)]


def _recode(content: bytes, random: Random) -> bytes:
    text = content.decode("utf-8", "replace")
    return random.choice(
        (
            text.encode("utf-16"),
            text.encode("latin-1", "replace"),
            b"\xef\xbb\xbf" + content,
            content.replace(b"\n", b"\r\n"),
            content.replace(b"\n", b"\r"),
        )
    )


CHANGES: tuple[Callable[[bytes, Random], bytes], ...] = (
    *(_replace_token, _replace_token, _replace_token, _change_line, _swap_lines),
    *(_flip_byte, _delete, _double, _insert, _cut_off, _recode),
)


def _span(content: bytes, random: Random) -> tuple[int, int]:
    start = random.randrange(len(content) + 1)
    return start, min(len(content), start + random.choice((1, 2, 8, 64)))


def _nasty(random: Random) -> bytes:
    return random.choice(NASTY).encode("utf-8", "surrogatepass")


@dataclass(frozen=True)
class Case:
    """A mutated file; `file` and `seed` reproduce its content."""

    file: Path
    seed: int
    content: bytes

    @property
    def title(self) -> str:
        return f"{self.file.name}, seed {self.seed}"


def list_files() -> tuple[Path, ...]:
    """List the files to mutate."""
    entries = sorted(CATALOGUE.glob("*/*.yaml"))
    return (
        *sorted((ROOT / "examples").glob("*.yaml")),
        *entries,
        CATALOGUE / "measured" / "abci.csv",
    )


def make_cases(seed: int, count: int) -> Iterator[Case]:
    """Yield `count` mutated files, the same for the same seed."""
    contents, parts = _read_files()
    files = list(contents)
    for number in range(seed * 1_000_003, seed * 1_000_003 + count):
        random = Random(number)
        file = files[number % len(files)]  # in turn: chance left some out
        if file in parts and random.random() < 0.5:
            content = json.dumps(mutate_part(parts[file], random)).encode()
        else:
            content = mutate(contents[file], random)
        yield Case(file, number, content)


@cache
def _read_files() -> tuple[dict[Path, bytes], dict[Path, Any]]:
    """Read the files to mutate, and the parts of those that have any, which nothing changes."""
    contents = {path: path.read_bytes() for path in list_files()}
    return contents, {path: load(path).data for path in contents if path.suffix == ".yaml"}


def list_readers() -> dict[str, Reader]:
    """Return readers by the name of a file's folder, or by its suffix."""
    kinds: tuple[Kind, ...] = ("model", "dataset", "system", "calibration")
    return {
        "examples": read_spec,
        "measured": read_runs,
        "families": _read_family,
        "graphs": lambda path: find_graph(path.name, path.parent),
        ".onnx": lambda path: import_network(str(path), None, "", allow=True),
        **{f"{kind}s": partial(_read_entry, kind) for kind in kinds},
    }


def _read_entry(kind: Kind, path: Path) -> object:
    return find(kind, str(path), path.parent)


def _read_family(path: Path) -> object:
    """Make a network of a family's file, with the settings of a model of the catalogue."""
    family = _list_families()[path.stem] | {"name": str(path)}
    return find("model", {"name": "net", "rank": 2, "family": family}, path.parent)


@cache
def _list_families() -> dict[str, dict[str, Any]]:
    """List the settings of each family's first model of the catalogue."""
    models = (find("model", name, Path()) for name in reversed(list_names("model")))
    families = [model.family for model in models if model.family]
    named = {family.name: family.model_dump() for family in families}
    # Of no model there, and small.
    sizes = {"blocks": 2, "features": 8, "heads": 2, "hidden": 16, "vocabulary": 32}
    sizes["positions"] = 64
    for name in {*list_families()} - {*named}:
        settings = load_family(name).settings
        required = (key for key, form in settings.items() if is_required(form))
        named[name] = {"name": name} | {key: sizes[key] for key in required}
    return named


def fault(case: Case, readers: Mapping[str, Reader], folder: Path) -> str:
    """Read a case; describe the fault unless it is read or refused by a short message, quickly."""
    path = folder / case.file.name
    path.write_bytes(case.content)
    read = readers.get(case.file.suffix) or readers[case.file.parent.name]
    start = time.process_time()
    try:
        read(path)
    except InputError as error:
        text = str(error)
        if len(text) >= MOST_MESSAGE or len(text.splitlines()) > MOST_LINES:
            return f"{case.title}: a message of {len(text)} characters: {text[:200]}"
    except Exception as error:  # users must never see any of these
        frame = traceback.extract_tb(error.__traceback__)[-1]
        return f"{case.title}: {type(error).__name__}: {str(error)[:200]} ({frame})"
    seconds = time.process_time() - start
    return f"{case.title}: took {seconds:.1f} s" if seconds > MOST_SECONDS else ""
