"""Names in options, checked before anything slow is imported: a slip is answered at once."""

from collections.abc import Mapping
from typing import Any, Literal

from grids.reading.errors import InputError

KINDS: tuple[Literal["model", "dataset", "system", "calibration"], ...] = (
    *("model", "dataset", "system", "calibration"),
)
# What an option has in the place of a name.
CHOICES = ("auto", "none")


def check_names(given: Mapping[str, Any], *, several: bool) -> None:
    """Refuse unknown models, data sets, systems, calibrations and strategies, under these keys.

    several: whether commas separate names.
    """
    # Late, as all that commands import.
    from grids.entries.strategies import parse_strategy
    from grids.names import check_name, split_labels

    def split(option: str) -> list[str]:
        text = given.get(option)
        if text is None:
            return []
        return split_labels(text) if several else [text]

    for kind in KINDS:
        for name in split(kind):
            if kind == "calibration" and name in CHOICES:
                continue
            try:
                check_name(kind, name)
            except InputError as error:
                raise InputError(str(error), where=f"--{kind}") from None
    for label in split("strategy"):
        parse_strategy(label, "--strategy")
