"""Rewriting of error messages: options in place of a function's arguments or a spec's keys.

Code below the command line knows no options, so its messages name arguments and keys. A command's
parameter has the name of the argument or key that it becomes, whatever its option is called:
`along` is `--crossovers`.
"""

import re
from collections.abc import Mapping
from typing import Any

# Arguments after which a message may name one item: `selection pe: ...`.
DETAILED = ("selection ", "splits ", "scheduler ")
# Values of axes in advice, such as pe=64 inter_bandwidth="25 GB/s".
ADVISED = r"(?<=such as ).*"
PAIR = re.compile(r'(?<!\S)(\w+)=("[^"]*"|\S+)')
GENERATOR = r"\{(pow2|range|linspace|geomspace): \[([^\]]*)\]\}"


def list_options(command: Any) -> dict[str, str]:
    """Return the options of a command, or of all commands of a group, by argument name."""
    options: dict[str, str] = {}
    # A group has several commands; messages of any of them name these options.
    for nested in getattr(command, "commands", {}).values():
        options |= list_options(nested)
    for parameter in command.params:
        # Users never see the name of an argument without a metavar.
        is_option = parameter.param_type_name == "option"
        written = parameter.opts[0] if is_option else parameter.metavar
        if written is not None:
            options[parameter.name] = written
    return options


def name_options(text: str, options: Mapping[str, str]) -> str:
    """Name options instead of arguments and keys, at the beginning of lines and in advice.

    `selection pe: ...` becomes `--sel pe: ...`, `axes.pe: ...` becomes `--pe: ...`, `force=True`
    becomes `--force`, and `'oracle: paper'` becomes `'--oracle paper'`.
    """

    def write(match: re.Match[str]) -> str:
        name, value = match.groups()
        if name not in options:
            return match[0]
        return f"{options[name]} {value}" if value else options[name]

    text = re.sub(r"\b(\w+)=(?:True\b|'([^']+)')", write, text)
    text = re.sub(r"(?<=')(\w+): ([^' ]+)(?=')", write, text)
    if "pe" in options:  # options write a generator as pow2:1..64, and a range as 1..64
        text = re.sub(
            GENERATOR,
            lambda match: f"{match[1]}:{match[2]}".replace(", ", "..").removeprefix("range:"),
            text,
        )
    return "\n".join(_name_head(line, options) for line in text.split("\n"))


def _name_head(line: str, options: Mapping[str, str]) -> str:
    head, colon, rest = line.partition(": ")
    names, space, detail = head.partition(" ") if head.startswith(DETAILED) else (head, "", "")
    known = [_find_option(name, options) for name in names.split(", ")]
    # A space is described by options, and has nothing to select; a slice needs --sel for each axis.
    if head == "space" or known == ["--sel"]:

        def write_pair(pair: re.Match[str]) -> str:
            if known != ["--sel"] and pair[1] in options:
                return f"{options[pair[1]]} {pair[2]}"
            return f"{known[0] or options['parameters']} {pair[0]}"

        rest = re.sub(ADVISED, lambda match: PAIR.sub(write_pair, match[0]), rest)
    # A spec that no user has written has keys that no user knows.
    if head == "space" or (colon and None in known and head.startswith("axes.")):
        return rest
    if not colon or None in known:
        return line
    return f"{', '.join(filter(None, known))}{space}{detail}{colon}{rest}"


def _find_option(name: str, options: Mapping[str, str]) -> str | None:
    key = re.sub(r"^axes\.|\.\d+$", "", name)
    if key not in options and name.startswith("axes.") and "parameters" in options:
        return f"{options['parameters']} {key}"  # --set with several values makes an axis
    return options.get(key)
