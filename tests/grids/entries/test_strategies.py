"""Strategies: the ten, their settings, and how they are written."""

import pytest

from paradl.grids.entries.strategies import Strategy, parse_strategy
from paradl.grids.entries.strategy_words import LIMIT, MEANING, TABLE_III
from paradl.grids.reading.errors import InputError


@pytest.mark.parametrize(
    ("text", "strategy"),
    [
        ("data", Strategy("data")),
        (" data+filter ", Strategy("data+filter")),
        ("data+filter:group=8", Strategy("data+filter", group=8)),
        ("data+filter: group = best", Strategy("data+filter", group="best")),
        ("pipeline:segments=16", Strategy("pipeline", segments=16)),
        ("pipeline:segments=best", Strategy("pipeline", segments="best")),
        ("data+pipeline:segments=2,group=4", Strategy("data+pipeline", group=4, segments=2)),
        ("data+pipeline:pipeline=4,segments=2", Strategy("data+pipeline", group=4, segments=2)),
        ("spatial:split=wh", Strategy("spatial", dims="hw")),
        ("spatial:split=auto", Strategy("spatial")),
        ("spatial:split=all", Strategy("spatial", layers="all")),
        ("spatial:split=w,layers=all", Strategy("spatial", dims="w", layers="all")),
        ("channel:layers=default", Strategy("channel")),
        (
            "pipeline+data+spatial:pipeline=8,spatial=best,segments=16,split=hw",
            Strategy(
                "data+spatial+pipeline",
                segments=16,
                dims="hw",
                degrees=(("spatial", "best"), ("pipeline", 8)),
            ),
        ),
        ("filter + pipeline", Strategy("filter+pipeline")),
        ("filter+data:group=4", Strategy("data+filter", group=4)),
    ],
)
def test_parse(text, strategy) -> None:
    assert parse_strategy(text) == strategy


@pytest.mark.parametrize(
    ("strategy", "parts", "replicated", "hybrid"),
    [
        ("serial", (), False, False),
        ("data", (), True, False),
        ("channel", ("channel",), False, False),
        ("data+spatial", ("spatial",), True, True),
        ("data+pipeline", ("pipeline",), True, True),
    ],
)
def test_a_strategy_is_parallelisms_in_replicas(strategy, parts, replicated, hybrid) -> None:
    read = parse_strategy(strategy)
    assert read.parts == parts
    assert (read.replicated, read.hybrid) == (replicated, hybrid)


@pytest.mark.parametrize(
    "text",
    [
        *MEANING,
        "data+filter:group=best",
        "data+pipeline:group=4,segments=2",
        "data+pipeline:group=best,segments=best",
        "spatial:split=hw,layers=all",
        "data+spatial+filter+pipeline:spatial=2,filter=4,pipeline=8,segments=16,split=hw",
        "spatial+pipeline",
        "data:zero=0",
        "data+pipeline:pipeline=2,chunks=1",
        "data+pipeline:pipeline=2,recompute=none",
        "data+pipeline:group=2,schedule=zb1p",
        "data+pipeline:pipeline=2,schedule=zbv",
        "data+tensor:tensor=2,zero=0",
        "data:sequence=off",
    ],
)
def test_the_label_is_what_the_user_writes(text) -> None:
    assert parse_strategy(text).label == text


def test_settings_are_labelled_in_one_order() -> None:
    assert (
        parse_strategy("data+pipeline:segments=2,group=4").label
        == "data+pipeline:group=4,segments=2"
    )
    assert parse_strategy("spatial:split=wh").label == "spatial:split=hw"
    assert parse_strategy("filter:layers=all").label == "filter:split=all"


@pytest.mark.parametrize(
    ("text", "choices", "settled"),
    [
        ("data+pipeline:group=best", ("group",), "data+pipeline:group=4"),
        ("pipeline:segments=best", ("segments",), "pipeline:segments=8"),
        (
            "data+pipeline:segments=best,group=best",
            ("group", "segments"),
            "data+pipeline:group=4,segments=8",
        ),
        ("data+pipeline:group=2,segments=2", (), "data+pipeline:group=2,segments=2"),
    ],
)
def test_what_is_chosen_takes_the_place_of_best(text, choices, settled) -> None:
    strategy = parse_strategy(text)
    assert strategy.choices == choices
    assert strategy.settle({"group": 4, "segments": 8}) == parse_strategy(settled)


def test_every_strategy_is_explained() -> None:
    assert MEANING.keys() == LIMIT.keys()
    assert len(TABLE_III) == 10
    assert {*MEANING} - {*TABLE_III} == {
        *("placement", "data+placement"),
        *("data+tensor", "data+context", "data+expert"),
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "expected a strategy's name, got None"),
        ("dta", "unknown strategy 'dta'; did you mean 'data'? known: channel, data, data+channel"),
        ("", "unknown strategy ''; known: channel, data"),
        (
            "filter+channel",
            "no strategy 'filter+channel': a layer divided both ways",
        ),
        ("placement+spatial", "operators are placed whole"),
        ("data+placement+filter", "operators are placed whole"),
        ("ddp", "ddp is 'data'"),
        ("data+data+filter", "unknown strategy 'data+data+filter'"),
        ("data+spatial+filter:group=8", "has no setting 'group'; known: "),
        ("data+pipeline:schedule=zbv,segments=8", "layouts; write 'micro=1' in its place"),
        ("data+filter:gruop=8", "has no setting 'gruop'; did you mean 'group'? known: group, lay"),
        ("data:group=8", "strategy 'data' has no setting 'group'; known: zero"),
        ("data:zero=4", "unknown zero '4'; "),
        ("filter:zero=1", "strategy 'filter' has no setting 'zero'"),
        ("pipeline:schedule=2f2b", "unknown schedule '2f2b'; known: 1f1b, gpipe"),
        ("data+filter+pipeline:schedule=zbv", "unknown schedule 'zbv'; known: "),
        ("filter:group=8", "strategy 'filter' has no setting 'group'; known: layers, split"),
        ("data+filter:group", "'data+filter:group': expected key=value once each, got 'group'"),
        ("data+filter:group=8,group=4", "expected key=value once each, got 'group=4'"),
        ("data+filter:group=8,filter=4", "strategy 'data+filter' has no setting 'filter'"),
        ("data+filter:group=0", "group: expected at least 1"),
        ("data+filter:group=2.5", "group: expected a whole number, got '2.5'"),
        ("data+filter:group=bset", "group: expected a whole number, got 'bset'"),
        ("pipeline:segments=0", "segments: expected at least 1"),
        ("filter:segments=best", "strategy 'filter' has no setting 'segments'; known: layers"),
        ("spatial:split=xy", "split: expected some of 'dhw', such as hw, or all, got 'xy'"),
        ("spatial:split=hh", "split: expected some of 'dhw', such as hw, or all, got 'hh'"),
        ("spatial:layers=some", "unknown layers 'some'; known: all, default"),
    ],
)
def test_bad_strategies(text, message) -> None:
    with pytest.raises(InputError) as error:
        parse_strategy(text)
    assert message in str(error.value)
    assert len(str(error.value)) < 250


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("megatron:tensor=1", "tensor=1,pipeline=best,micro=best,zero=1"),
        ("megatron:tensor=8", "tensor=8,pipeline=best,micro=best,sequence=on,zero=1"),
        ("hsdp:zero=0", "micro=best,zero=0"),
        ("hsdp:zero=0,shard=4", "micro=best,zero=0,shard=4"),
    ],
)
def test_names_bring_no_setting_that_divides_nothing(text, label) -> None:
    assert parse_strategy(text).label.partition(":")[2] == label


def test_a_place_leads_the_message() -> None:
    with pytest.raises(InputError, match=r"^axes\.strategy: unknown strategy"):
        parse_strategy("dta", "axes.strategy")


@pytest.mark.parametrize("text", ["data+fsdp", "zero-3"])
def test_sharded_states_have_a_setting(text):
    with pytest.raises(InputError, match="data:zero=3"):
        parse_strategy(text)
