"""Messages about a function's arguments, or a spec's keys, in the words of a command's options.

The code below the command line knows no options. Its messages name arguments and keys, and each
parameter of a command has the name of the argument or key that it becomes: `along`, which is
`--crossovers`.
"""

import re
from collections.abc import Mapping
from typing import Any

# Arguments behind which a message may name a part of them.
DETAILED = ("selection ", "splits ", "scheduler ")
GENERATOR = r"\{(pow2|range|linspace|geomspace): \[([^\]]*)\]\}"


def list_options(command: Any) -> dict[str, str]:
    """The options of a command, or of the commands of a group, by the names of their arguments."""
    options: dict[str, str] = {}
    for nested in getattr(command, "commands", {}).values():
        options |= list_options(nested)
    for parameter in command.params:
        # An argument without a metavar has no name that users see.
        is_option = parameter.param_type_name == "option"
        written = parameter.opts[0] if is_option else parameter.metavar
        if written is not None:
            options[parameter.name] = written
    return options


def name_options(text: str, options: Mapping[str, str]) -> str:
    """A message with options in place of arguments and keys, where a line begins and in advice.

    `selection pe: ...` becomes `--sel pe: ...`, `axes.pe: ...` becomes `--pe: ...`, `force=True`
    becomes `--force`, and `'oracle: paper'` becomes `'--oracle paper'`.
    """
    text = re.sub(r"\b(\w+)=(?:True\b|'([^']+)')", lambda match: _write(match, options), text)
    text = re.sub(r"(?<=')(\w+): ([^' ]+)(?=')", lambda match: _write(match, options), text)
    if "pe" in options:  # where axes are options, a generator is pow2:1..64, and a range 1..64
        text = re.sub(GENERATOR, _write_generator, text)
    return "\n".join(_name_head(line, options) for line in text.split("\n"))


def _write(match: re.Match[str], options: Mapping[str, str]) -> str:
    """An option with its value, if it has one; what is no option stays as it is."""
    name, value = match.groups()
    if name not in options:
        return match[0]
    return options[name] if value is None else f"{options[name]} {value}"


def _write_generator(match: re.Match[str]) -> str:
    name, ends = match[1], match[2].replace(", ", "..")
    return ends if name == "range" else f"{name}:{ends}"


def _name_head(line: str, options: Mapping[str, str]) -> str:
    """A line with options where it begins with arguments."""
    head, colon, rest = line.partition(": ")
    names, space, detail = head.partition(" ") if head.startswith(DETAILED) else (head, "", "")
    known = [_find_option(name, options) for name in names.split(", ")]
    if not colon or None in known:
        return line
    if known == ["--sel"]:  # advice to slice: each value of an axis is an option
        rest = re.sub(
            r"(?<=such as ).*", lambda m: re.sub(r"(?<!\S)(?=\w+=)", "--sel ", m[0]), rest
        )
    return f"{', '.join(filter(None, known))}{space}{detail}{colon}{rest}"


def _find_option(name: str, options: Mapping[str, str]) -> str | None:
    """The option of an argument or a key; None: there is none."""
    key = re.sub(r"^axes\.|\.\d+$", "", name)
    if key not in options and name.startswith("axes.") and "parameters" in options:
        return f"{options['parameters']} {key}"  # a parameter that was given several values
    return options.get(key)
