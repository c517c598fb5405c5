from grids.entries.strategies import MEANING
from sweep.questions import catalogue


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
