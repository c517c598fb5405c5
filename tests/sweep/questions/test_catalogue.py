import pytest
from open_answers import list_datasets, list_parameters

from paradl.grids.entries.strategy_words import MEANING
from paradl.grids.reading.errors import InputError
from paradl.sweep.questions import catalogue


def test_models_have_the_published_figures():
    rows = {row["model"]: row for row in catalogue.list_models()}
    assert rows["resnet50"]["parameters"] == 25_557_032
    assert rows["vgg16"]["parameters"] == 138_357_544
    assert abs(rows["resnet50"]["macs"] / 4.089e9 - 1) < 0.01
    assert all(row["source"] for row in rows.values())


def test_one_model_is_listed_as_among_all():
    rows = catalogue.list_models()
    for row in rows[::4]:
        assert catalogue.list_models(row["model"]) == [row]


def test_datasets_tell_their_samples():
    rows = {row["dataset"]: row for row in catalogue.list_datasets()}
    assert rows["imagenet"]["samples"] == 1_281_167
    assert rows["imagenet"]["shape"] == "3x224x224"


def test_systems_tell_their_levels():
    rows = {row["system"]: row for row in catalogue.list_systems()}
    assert [level["pes"] for level in rows["abci"]["levels"]][:3] == [4, 68, 136]


def test_systems_tell_their_power():
    rows = {row["system"]: row["watts"] for row in catalogue.list_systems()}
    assert (rows["gb300-nvl72"], rows["tpu-v5e"]) == (1400, None)


def test_one_system_is_listed_as_among_all():
    rows = catalogue.list_systems()
    assert [row["system"] for row in rows] == sorted(row["system"] for row in rows)
    for row in rows:
        assert catalogue.list_systems(row["system"]) == [row]
    assert catalogue.find_system("abci:precision=amp").peak == 125e12


def test_every_strategy_is_listed():
    listed = [row["strategy"] for row in catalogue.list_strategies()]
    assert listed[: len(MEANING)] == [*MEANING]
    # Then pairs inside a replica, those that cannot be combined too.
    assert {"spatial+pipeline", "filter+channel"} <= {*listed[len(MEANING) :]}


def test_one_entry_is_listed_as_among_all():
    for listed in (list_datasets, list_parameters):
        rows = listed()
        kind = next(iter(rows[0]))
        assert all(listed(row[kind]) == [row] for row in rows[::4])
    single = catalogue.list_strategies()[: len(MEANING)]
    assert all(catalogue.list_strategies(row["strategy"]) == [row] for row in single)
    (pair,) = catalogue.list_strategies("pipeline+spatial:pipeline=2")
    assert pair["strategy"] == "spatial+pipeline"
    three = catalogue.list_strategies("data+spatial+pipeline")
    assert [row["strategy"] for row in three] == ["spatial", "pipeline"]


@pytest.mark.parametrize(
    ("listed", "wrong", "meant"),
    [
        (catalogue.list_datasets, "imagnet", "imagenet"),
        (catalogue.list_parameters, "inter_bandwith", "inter_bandwidth"),
        (catalogue.list_strategies, "dta", "data"),
    ],
)
def test_a_mistyped_name_has_the_nearest_in_its_message(listed, wrong, meant):
    with pytest.raises(InputError, match=f"'{meant}'"):
        listed(wrong)
