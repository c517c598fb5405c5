"""Values of bash: tests, as far as a script itself decides them, edits, sums, Slurm's variables."""

import operator
import re
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import Any

from paradl.grids.models.files.expressions import fill_in

# sbatch's options, as variables that Slurm sets of them.
SBATCH = re.compile(r"^#SBATCH[ \t]+([^\n#]+)", re.M)
SLURM = {
    ("--nodes", "-N"): ("SLURM_NNODES", "SLURM_JOB_NUM_NODES"),
    ("--ntasks", "-n"): ("SLURM_NTASKS", "SLURM_NPROCS"),
    ("--ntasks-per-node",): ("SLURM_NTASKS_PER_NODE",),
    ("--gpus-per-node", "--gres"): ("SLURM_GPUS_PER_NODE", "SLURM_GPUS_ON_NODE"),
}
NUMBERS = {f"-{name}": getattr(operator, name) for name in ("eq", "ne", "gt", "ge", "lt", "le")}
JOINTS = (("||", True), ("-o", True), ("&&", False), ("-a", False))


def judge_test(words: list[str]) -> bool | None:
    """Return whether a test holds; None if it depends on more than the script.

    What is not set, and so begins with a dollar, is empty.

    >>> judge_test(["8", "-gt", "4", "&&", "-n", "$NODES"])
    False
    """
    for sign, any_of in JOINTS:
        if sign in words:
            place = words.index(sign)
            first, second = judge_test(words[:place]), judge_test(words[place + 1 :])
            return first or second if any_of else first and second
    match words:
        case ["!", *rest]:
            holds = judge_test(rest)
            return None if holds is None else not holds
        case ["-z", value] | [value, "=" | "==", ""]:
            return not value or value.startswith("$")
        case ["-n", value] | [value, "!=", ""]:
            return bool(value) and not value.startswith("$")
        case [left, sign, right] if "$" not in left + right:
            if sign in ("=", "==", "!="):
                return fnmatchcase(left, right) is (sign != "!=")
            if sign in NUMBERS and (left + right).isdecimal():
                return bool(NUMBERS[sign](int(left[:9]), int(right[:9])))
    return None


def edit(value: str, sign: str, pattern: str) -> str:
    """Return what `${A,,}`, `${A^^}`, `${A%.sh}`, `${A##*/}` or `${A/-/_}` make of a value.

    >>> edit("runs/LLAMA.sh", "##", "*/"), edit("a.sh", "%", ".*"), edit("8B", ",,", "")
    ('LLAMA.sh', 'a', '8b')
    """
    places = range(len(value) + 1) if len(value) < 1000 else ()
    match sign[0]:
        case "," | "^":
            return value.lower() if sign[0] == "," else value.upper()
        case "%":
            ends = [place for place in places if fnmatchcase(value[place:], pattern)]
            return value[: ends[0 if sign == "%%" else -1]] if ends else value
        case "#":
            starts = [place for place in places if fnmatchcase(value[:place], pattern)]
            return value[starts[-1 if sign == "##" else 0] :] if starts else value
    old, _, new = pattern.partition("/")
    return value.replace(old, new, -1 if sign == "//" else 1)


def calculate(text: str) -> str | None:
    """Return the whole number that an expression is, or holds, as 1 and 0; None if it is none.

    >>> calculate("8 * 16 / 3"), calculate("4 > 2"), calculate("$NODES")
    ('42', '1', None)
    """
    try:
        value: Any = fill_in(f"$({text.strip().replace('/', '//')})", {})
        return str(int(value or 0))
    except (ValueError, TypeError, ArithmeticError):
        return None


def read_sbatch(text: str) -> dict[str, str]:
    """Return the variables that Slurm sets by the options of sbatch in a script.

    >>> read_sbatch("#SBATCH -N 4 --time=10:00")
    {'SLURM_NNODES': '4', 'SLURM_JOB_NUM_NODES': '4'}
    """
    variables: dict[str, str] = {}
    for options in SBATCH.findall(text):
        for option, value in pairwise(options.replace("=", " ").split()):
            names = next((names for words, names in SLURM.items() if option in words), ())
            if count := re.search(r"\d+$", value):
                variables |= dict.fromkeys(names, count[0])
    nodes, each = variables.get("SLURM_NNODES"), variables.get("SLURM_NTASKS_PER_NODE")
    if nodes and each:
        variables.setdefault("SLURM_NTASKS", str(int(nodes) * int(each)))
    return variables
