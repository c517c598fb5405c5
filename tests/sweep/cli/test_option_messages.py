"""Messages of functions and specs speak of the options that a command has."""

import pytest
import typer

from paradl.sweep.cli.main import app
from paradl.sweep.cli.option_messages import list_options, name_options


def name(text: str, command: str) -> str:
    """The message as a command tells it."""
    group = typer.main.get_group(app)
    return name_options(text, list_options(group.commands[command]))


@pytest.mark.parametrize(
    ("command", "text", "expected"),
    [
        ("limits", "along: unknown", "--crossovers: unknown"),
        ("export", "partition_by: only Parquet", "--partition-by: only Parquet"),
        ("export", "output, undefined: no", "OUTPUT, --all: no"),
        ("status", "price: above 0", "price: above 0"),
        ("compare", "runs.csv:3: batch: too few", "runs.csv:3: batch: too few"),
        ("best", "selection pe: a number", "--sel pe: a number"),
        (
            "plot",
            "selection: add such as pe=8 batch=4 (known)",
            "--sel: add such as --sel pe=8 --sel batch=4 (known)",
        ),
        ("surrogate", "splits random: empty", "--split random: empty"),
        ("sweep", "x.zarr: is there; give overwrite=True", "x.zarr: is there; give --overwrite"),
        ("hybrid", "give convergence='FILE.csv'", "give --convergence FILE.csv"),
        (
            "predict",
            "axes.pe: too few\nparameters: gamma: too many\naxes.strategy.0: unknown",
            "--pe: too few\n--set: gamma: too many\n--strategy: unknown",
        ),
        ("best", "axes.inter_bandwidth.1: 10 B/s", "--set inter_bandwidth: 10 B/s"),
        ("best", "'gamma' is of 'oracle: paper'", "'gamma' is of '--oracle paper'"),
        ("best", "write it {range: [1, 64]}", "write it 1..64"),
        ("sweep", "write it {range: [1, 64]}", "write it {range: [1, 64]}"),
    ],
)
def test_arguments_and_keys_are_options(command, text, expected):
    assert name(text, command) == expected


@pytest.mark.parametrize(
    ("question", "argument"),
    [
        (("best", "--objective", "cost"), "--price"),
        (("best", "--objective", "cost", "--price", "-2"), "--price"),
        (("limits", "--crossovers", "inter_bandwith"), "--crossovers"),
        (("limits", "--efficiency", "80"), "--efficiency"),
        (("provision", "--deadline", "6 h"), "--epochs"),
        (("provision", "--deadline", "6 parsecs"), "--deadline"),
        (("provision", "--need", "bandwith"), "--need"),
        (("pareto", "--against", "cost"), "--price"),
        (("pareto", "--against", "cost", "--price", "0"), "--price"),
        (("best", "--worst-case", "machine"), "--worst-case"),
        (("bottleneck", "--strategy", "tensor"), "--strategy"),
        (("best", "--system", "dgx"), "--system: no system 'dgx' in this cube"),
        (("best", "--pe", "65"), "--pe: no pe '65' in this cube"),
        (("best", "--pe", "8.."), "--pe: expected a range"),
        (("best", "--sel", "pe=8.."), "--sel pe: expected a range"),
        (("best", "--sel", "system=dgx"), "--sel: no system"),
        (("pareto", "--price", "2"), "--price: belongs to --against cost"),
    ],
)
def test_no_message_names_an_argument(question, argument, small_url, cli):
    verb, *given = question
    code, out, err = cli(verb, small_url, *given)
    assert (code, out) == (2, "")
    assert err.startswith(f"paradl: {argument}")
