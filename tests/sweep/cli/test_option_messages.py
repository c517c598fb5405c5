import pytest
import typer

from grids.reading.errors import InputError
from sweep.cli.main import app
from sweep.cli.option_messages import ARGUMENTS, SAME, name_option, speak_of_options


def test_messages_speak_of_options():
    with pytest.raises(InputError) as told, speak_of_options():
        raise InputError("axes.pe: too few\nparameters: gamma: too many\naxes.strategy.0: unknown")
    assert str(told.value) == "--pe: too few\n--set: gamma: too many\n--strategy: unknown"


def test_settings_of_a_spec_are_options():
    with pytest.raises(InputError) as told, speak_of_options():
        raise InputError("'gamma' is none of 'oracle: machine'; write 'oracle: paper'")
    assert str(told.value) == "'gamma' is none of '--oracle machine'; write '--oracle paper'"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("along: unknown", "--crossovers: unknown"),
        ("partition_by: only Parquet", "--partition-by: only Parquet"),
        ("price: above 0: so", "--price: above 0: so"),
        ("--price: above 0", "--price: above 0"),
        ("runs.csv:3: batch: too few", "runs.csv:3: batch: too few"),
        ("price", "price"),
        ("selection: no pe 65", "--sel: no pe 65"),
        ("selection pe: a number", "--sel pe: a number"),
        (
            "selection: add such as pe=8 batch=4 (known)",
            "--sel: add such as --sel pe=8 --sel batch=4 (known)",
        ),
        ("overwrite, extend: not both", "--overwrite, --extend: not both"),
        ("x.csv: is there; give force=True", "x.csv: is there; give --force"),
        ("no epochs; give convergence='FILE.csv'", "no epochs; give --convergence FILE.csv"),
        ("no cells; sweep without reduce_only=True", "no cells; sweep without --reduce-only"),
    ],
)
def test_arguments_of_functions_are_options(text, expected):
    assert name_option(text) == expected


@pytest.mark.parametrize(
    ("question", "argument"),
    [
        (("best", "--objective", "cost"), "--objective"),
        (("best", "--objective", "cost", "--price", "-2"), "--price"),
        (("limits", "--crossovers", "inter_bandwith"), "--crossovers"),
        (("limits", "--efficiency", "80"), "--efficiency"),
        (("provision", "--deadline", "6 h"), "--epochs"),
        (("provision", "--deadline", "6 parsecs"), "--deadline"),
        (("provision", "--need", "bandwith"), "--need"),
        (("pareto", "--against", "cost"), "--price"),
        (("pareto", "--against", "cost", "--price", "0"), "--price"),
        (("regret", "--over", "machine"), "--over"),
        (("bottleneck", "--strategy", "tensor"), "--sel"),
    ],
)
def test_no_message_names_an_argument(question, argument, small_url, paradl):
    verb, *given = question
    code, out, told = paradl(verb, small_url, *given)
    assert (code, out) == (2, "")
    assert told.startswith(f"paradl: {argument}")


def test_every_name_is_an_option():
    """Of some command: what none has cannot be spoken of so."""
    command = typer.main.get_group(app)
    nested = command.commands["surrogate"]
    assert isinstance(nested, typer.core.TyperGroup)
    options = {
        name
        for each in (*command.commands.values(), *nested.commands.values())
        for parameter in each.params
        for name in (*parameter.opts, parameter.metavar)
    }
    named = {name_option(f"{name}: x").partition(":")[0] for name in (*ARGUMENTS, *SAME)}
    assert named - {"--size"} <= options
