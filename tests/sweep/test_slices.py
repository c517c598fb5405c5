import numpy as np
import pytest

from grids.errors import InputError
from sweep.questions.slices import select, slices


@pytest.mark.parametrize("value", ["3,8", ["8", 3], [8, "3", "3"], ("3 , 8",)])
def test_values_come_in_the_order_of_the_axis(mixed, value):
    assert select(mixed, {"pe": value}).pe.values.tolist() == [3, 8]


def test_a_value_may_have_a_unit(mixed):
    found = select(mixed, {"inter_bandwidth": "12.5 GB/s"})
    assert found.inter_bandwidth.values.tolist() == [12.5e9]


def test_a_label_may_have_commas(tmp_path, small):
    import sweep

    small["axes"] |= {"strategy": ["data", "data+spatial:group=2,split=w"]}
    cube = sweep.run(small, tmp_path / "cube.zarr")
    for given in ("data+spatial:group=2,split=w", ["data+spatial:group=2,split=w"]):
        found = select(cube, {"strategy": given})
        assert found.strategy.values.tolist() == ["data+spatial:group=2,split=w"]


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        ({"modl": "alexnet"}, "no axis 'modl' in this cube; did you mean 'model'"),
        ({"model": "alexnt"}, "no model 'alexnt' in this cube; did you mean 'alexnet'"),
        ({"model": "alexnet,vgg"}, "no model 'vgg'"),
        ({"pe": 5}, "no pe 5 in this cube; known:"),
        ({"pe": "many"}, "expected a number, got 'many'"),
        ({"inter_bandwidth": "3 s"}, "expected a value in B/s"),
    ],
)
def test_what_is_not_there(mixed, selection, message):
    with pytest.raises(InputError, match=message):
        select(mixed, selection)


def test_slices_are_the_combinations_that_exist(mixed):
    found = list(slices(mixed))
    assert len(found) == 2 * mixed.sizes["strategy"]
    first = found[0]
    assert first.labels["dataset"] == "imagenet-226"
    assert first.comp_time.shape == (5, 4)
    assert list(first.axes) == ["batch", "inter_bandwidth"]
    cell = mixed.sel(first.labels).sel(pe=8, batch=64, inter_bandwidth=1e9)
    assert first.axes["batch"][2] == 64
    assert first.axes["inter_bandwidth"][2] == 1e9
    np.testing.assert_array_equal(first.comp_time[3, 2], cell.comp_time)
    np.testing.assert_array_equal(first.serial_time[2], cell.serial_time)


def test_what_a_question_needs(mixed):
    with pytest.raises(InputError, match=r"no variable 'memory'; sweep with outputs: \[comp_time"):
        next(slices(mixed.drop_vars("memory")))
