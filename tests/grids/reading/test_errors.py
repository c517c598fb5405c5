"""Messages about input: where, what, what to do."""

import pickle
import time
from collections.abc import Collection

import pytest

from paradl.grids.entries.parameters import FREE
from paradl.grids.entries.precision import PRECISIONS
from paradl.grids.reading.errors import (
    MOST_TEXT,
    InputError,
    ShapeError,
    find_meant,
    format_count,
    format_text,
    shorten,
    suggest_name,
)


@pytest.mark.parametrize(
    ("where", "advice", "text"),
    [
        ("", "", "no such file"),
        ("spec.yaml:3", "", "spec.yaml:3: no such file"),
        ("", "check the path", "no such file; check the path"),
        ("spec.yaml:3", "check the path", "spec.yaml:3: no such file; check the path"),
    ],
)
def test_message(where: str, advice: str, text: str) -> None:
    assert str(InputError("no such file", where=where, advice=advice)) == text


def test_counts_have_their_noun() -> None:
    assert format_count(1, "row") == "1 row"
    assert format_count(0, "row") == "0 rows"
    assert format_count(2_000, "micro-batch") == "2,000 micro-batches"
    assert format_count(2, "strategy", "strategies") == "2 strategies"
    assert format_count(1, "strategy", "strategies") == "1 strategy"


def test_an_error_travels_between_processes() -> None:
    error = InputError("no such file", where="a.yaml", advice="check")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("resnet5", "did you mean 'resnet50'? known: alexnet, resnet50"),
        ("AlexNet", "did you mean 'alexnet'? known: alexnet, resnet50"),
        ("zzz", "known: alexnet, resnet50"),
    ],
)
def test_nearest(name: str, advice: str) -> None:
    assert suggest_name(name, ["resnet50", "alexnet"]) == advice


def test_a_hint_is_not_followed_by_many_names() -> None:
    names = [f"name{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"]
    assert suggest_name("namea1", names) == "did you mean 'namea'?"
    assert suggest_name("zzz", names).startswith("known: namea, nameb")


@pytest.mark.parametrize(
    ("word", "names", "meant"),
    [
        ("bandwidth", FREE, "inter_bandwidth"),
        ("network-bandwidth", FREE, "inter_bandwidth"),
        ("fp16", PRECISIONS, "amp"),
        ("bn", ["conv", "batchnorm"], "batchnorm"),
        ("Dense", ["conv", "fc"], "fc"),
        ("gpus", ["batch", "pe"], "pe"),
        ("gpus", ["p", "total_s"], "p"),
        ("lm1b", ["imagenet"], None),
    ],
)
def test_words_from_elsewhere(word: str, names: Collection[str], meant: str | None) -> None:
    assert find_meant(word, names) == meant


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a", "'a'"),
        ([1, "b", None], "[1, 'b', None]"),
        ({"pow": [1, 8]}, "{'pow': [1, 8]}"),
        (1e308, "1e+308"),
        (10**400, "an enormous number"),
        # Python refuses to print it in decimal.
        pytest.param(-(1 << 10**6), "an enormous number", id="enormous"),
        (list(range(10**6)), "[0, 1, 2, 3, 4, 5, ...]"),
        ([[[[["deep"]]]]], "[[[[...]]]]"),
        ("\ud800\x1b[31m\n", r"'\ud800\x1b[31m\n'"),
    ],
)
def test_a_value_is_shown_shortly(value: object, text: str) -> None:
    assert shorten(value) == text


@pytest.mark.parametrize("value", ["a" * 10**6, {"a" * 10**6: ["b" * 10**6] * 9}, b"a" * 10**6])
def test_a_large_value_is_cut(value: object) -> None:
    assert len(shorten(value)) <= 80


def test_a_value_that_contains_itself_is_shown() -> None:
    """600 bytes of YAML make such values; printing one takes forever."""
    value: list[object] = []
    for _ in range(100):
        value = [value] * 9
    start = time.process_time()
    assert len(shorten(value)) <= 80
    assert time.process_time() - start < 1


def test_a_name_has_quotes_only_where_it_needs_them() -> None:
    assert (format_text("vgg16"), format_text("a\nb"), format_text(3)) == ("vgg16", r"'a\nb'", "3")


def test_no_message_is_long() -> None:
    """The beginning (where) and the end (what to do) are kept."""
    text = str(InputError("x" * 10**6, where="a.yaml:3", advice="check the path"))
    assert len(text) <= MOST_TEXT
    assert text.startswith("a.yaml:3: xxx")
    assert text.endswith("xxx; check the path")
    assert len(str(ShapeError("x" * 10**6))) <= MOST_TEXT


def test_a_million_names_are_not_listed() -> None:
    text = suggest_name("zzz" * 10**6, map(str, range(10**6)))
    assert text.startswith("known: 0, 1, 10, 100, ")
    assert len(text) < 600
