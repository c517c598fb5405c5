"""When hybrid wins, as text: for people three tables; as CSV the rows; as JSON all of it."""

from collections.abc import Mapping, Sequence
from typing import Any

from sweep.show.columns import format_cell
from sweep.show.comparison import format_percent
from sweep.show.tables import Format, Row, print_json, print_table, show
from sweep.show.visible import escape_lines

AGAINST = {"same": "data on as many PEs", "best": "data's best up to there"}


def show_hybrid(answer: Mapping[str, Any], form: Format) -> None:
    """Print what `hybrid` answers."""
    if form == "json":
        print_json(answer)
        return
    if form == "csv":
        show(answer["rows"], form)
        return
    print(escape_lines("\n".join(_describe(answer))))
    title = "Speed-up to the target over one PE"
    print_table([_lay_out_row(row) for row in answer["rows"]], title)
    most = answer["gain"]["pe"]
    crossovers = [_lay_out_crossover(each, most) for each in answer["crossovers"]]
    print_table(crossovers, "From how many PEs on the hybrid wins")
    print(describe_gain(answer["gain"]))


def _describe(answer: Mapping[str, Any]) -> list[str]:
    """Lines of what was asked, and what it rests on."""
    epochs = answer["epochs"]
    where = f" on {answer['system']}" if answer["system"] else ""
    source = "; ".join(epochs["source"])
    lines = [
        f"{answer['model']}, {answer['dataset']}{where}, {answer['batch']:,} samples per replica, "
        f"until {answer['target']}",
        f"epochs: {_describe_law(epochs)}" + (f" ({source})" if source else ""),
    ]
    return [*lines, *(_describe_split(each, answer["splits"]) for each in answer["splits"])]


def _describe_law(epochs: Mapping[str, Any]) -> str:
    """Which batches were measured, and the law beyond them."""
    low, high = epochs["measured"]
    critical = epochs["critical_batch"]
    growth = "" if critical is None else f" (1 + B / {critical:,.0f})"
    law = f"{format_cell(epochs['epochs_min'])}{growth}"
    wall = epochs["converges_to"]
    limit = "" if wall is None else f", none beyond {wall:,}"
    if low is None:
        return f"{law}{limit}"
    return f"measured from B = {low:,} to {high:,}{limit}; outside {law}"


def _describe_split(split: Row, splits: Sequence[Row]) -> str:
    """SU^M of a hybrid, whose word it is, and whether it is the most of several of its size."""
    several = sum(each["group"] == split["group"] for each in splits) > 1
    fastest = "; the fastest split" if several and split["fastest"] else ""
    verb = "predicted" if split["basis"] == "oracle" else "given"
    across = "predicted" if split["scaling_efficiency"] == "oracle" else "given"
    return (
        f"{split['strategy']}: an iteration {format_cell(split['speedup'])} times as fast in a "
        f"group of {split['group']} ({verb}); scaling efficiency {across}{fastest}"
    )


def _lay_out_row(row: Row) -> dict[str, Any]:
    return {
        "p": row["pe"],
        "strategy": row["strategy"],
        "replicas": row["replicas"],
        "B": row["global_batch"],
        "SE": row["scaling_efficiency"],
        "epochs": row["epochs"] if row["converges"] else "never",
        "speed-up": row["speedup"],
        "80% interval": _format_interval(row),
        "wins": "wins" if row["wins"] else "",
        "remarks": ", ".join(_list_remarks(row)),
    }


def _format_interval(row: Row) -> str:
    return "-" if row["p10"] is None else f"{format_cell(row['p10'])} to {format_cell(row['p90'])}"


def _list_remarks(row: Row) -> list[str]:
    """What forbids the row, and that its batch was not measured."""
    return [*row["limit"], *(["extrapolated"] if row["extrapolated"] and row["converges"] else [])]


def _lay_out_crossover(crossover: Row, most: int) -> dict[str, Any]:
    """A line for a hybrid and what it is held against."""
    group = crossover["group"]
    return {
        "strategy": crossover["strategy"],
        "against": AGAINST[crossover["against"]],
        "from p on": _format_count(crossover["pe"], group, most),
        "80% interval": _format_ends(crossover, most),
        "chance": format_percent(crossover["chance"]),
        "remarks": ", ".join(_list_crossover_remarks(crossover)),
    }


def _list_crossover_remarks(crossover: Row) -> list[str]:
    """That it is not the first, and that a batch there was not measured."""
    several = crossover["several"] and crossover["pe"] is not None
    return [
        *(["the last of several"] if several else []),
        *(["extrapolated"] if crossover["extrapolated"] else []),
    ]


def _format_ends(crossover: Row, most: int) -> str:
    """p10 and p90 of a crossover, once where they are the same."""
    ends = [_format_count(crossover[end], crossover["group"], most) for end in ("p10", "p90")]
    return " to ".join(dict.fromkeys(ends))


def _format_count(count: int | None, group: int, most: int) -> str:
    """A crossover as people read it."""
    if count is None:
        return f"never up to {most:,}"
    return "all counts" if count == group else f"{count:,}"


def describe_gain(gain: Row) -> str:
    """The gain in words: who wins by how much, with which counts."""
    if gain["gain"] is None:
        return f"No gain can be told up to {gain['pe']:,} PEs."
    pairs = f"{gain['strategy']} on {gain['hybrid_pe']:,} over data on {gain['data_pe']:,}"
    extrapolated = " (extrapolated)" if gain["extrapolated"] else ""
    won = "Gain" if gain["gain"] > 0 else "No hybrid wins: gain"
    return (
        f"{won} up to {gain['pe']:,} PEs: {format_percent(gain['gain'])}"
        f"{_format_gains(gain)}, {pairs}{extrapolated}"
        + ("" if gain["chance"] is None else f"; chance of a gain {format_percent(gain['chance'])}")
    )


def _format_gains(gain: Row) -> str:
    """The interval of a gain, or that there is none."""
    if gain["p10"] is None:
        return " (no interval: nothing that was given has a spread)"
    return f" ({format_percent(gain['p10'])} to {format_percent(gain['p90'])})"
