import numpy as np
import pytest

import paradl
from paradl.grids.reading.errors import InputError
from paradl.sweep.cells.selection import find_nearest, locate_values, select, write_choice


@pytest.mark.parametrize("value", ["3,8", ["8", 3], [8, "3", "3"], ("3 , 8",)])
def test_values_come_in_the_order_of_the_axis(mixed, value):
    assert select(mixed, {"pe": value}).pe.values.tolist() == [3, 8]


def test_a_value_may_have_a_unit(mixed):
    part = select(mixed, {"inter_bandwidth": "12.5 GB/s"})
    assert part.inter_bandwidth.values.tolist() == [12.5e9]


def test_what_is_refused_names_values_that_can_be_typed(mixed):
    with pytest.raises(InputError, match=r"12\.5 GB/s"):
        select(mixed, {"inter_bandwidth": "13 GB/s"})


def test_a_label_may_have_commas(tmp_path, small):
    import paradl

    small["axes"] |= {"strategy": ["data", "data+spatial:group=2,split=w"]}
    cube = paradl.run(small, tmp_path / "cube.zarr")
    for given in ("data+spatial:group=2,split=w", ["data+spatial:group=2,split=w"]):
        part = select(cube, {"strategy": given})
        assert part.strategy.values.tolist() == ["data+spatial:group=2,split=w"]
    both = select(cube, {"strategy": "data+spatial:group=2,split=w, data"})
    assert both.strategy.values.tolist() == ["data", "data+spatial:group=2,split=w"]


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        ({"modl": "alexnet"}, "^selection: .*'modl'.*'model'"),
        ({"model": "alexnt"}, "^selection: .*'alexnt'.*'alexnet'"),
        ({"model": "alexnet,vgg"}, "^selection: .*'vgg'"),
        ({"pe": 5}, "^selection: .* pe 5 .*nearest is 4"),
        ({"pe": "many"}, "^selection pe: .*'many'"),
        ({"inter_bandwidth": "3 s"}, "^selection inter_bandwidth: .*B/s"),
        ({"pe": []}, "^selection pe: "),
        ("pe=8", "^selection: .*'pe=8'"),
    ],
)
def test_what_is_not_there(mixed, selection, message):
    with pytest.raises(InputError, match=message):
        select(mixed, selection)


def test_small_values_are_told_apart():
    """Latencies of nanoseconds differ by less than NumPy's absolute tolerance, 1e-8."""
    latencies = {"inter_latency": np.array([1e-9, 5e-9])}
    result = locate_values(latencies, {"inter_latency": "5 ns"})
    assert result["inter_latency"].tolist() == [1]


def test_many_values_are_stated_by_the_nearest():
    nearest = "nearest is 5000, then 5010; known: 10,000 values from 10 to 100000"
    with pytest.raises(InputError, match=f"^selection: .* 5002 .*{nearest}$"):
        locate_values({"pe": np.arange(1, 10_001) * 10}, {"pe": 5002})


def test_values_that_rows_repeat_are_stated_once():
    rows = {"tensor": ("layout", np.repeat([1, 2, 4, 8], 100))}
    with pytest.raises(InputError, match=r"nearest is 2; known: 1, 2, 4, 8$"):
        locate_values({"layout": np.arange(400)}, {"tensor": 3}, rows)


def test_a_row_of_a_layout_is_written_as_one_selects_it():
    """By its words; a row of other parameters by its number."""
    degrees = {"tensor": np.array([1, 2, 2]), "pipeline": np.array([4, 1, 4])}
    columns = {name: ("layout", values) for name, values in degrees.items()}
    for row in range(3):
        words = write_choice("layout", row, columns).strip('"')
        assert "tp" in words
        assert locate_values({"layout": np.arange(3)}, {"layout": words}, columns) == {
            "layout": row
        }
    assert write_choice("link", 1, {"inter_latency": ("link", np.array([1e-6, 2e-6]))}) == "1"


def test_the_nearest_values_of_axes_of_numbers():
    axes = {"pe": np.array([4, 8, 16]), "inter_bandwidth": np.geomspace(1e9, 1e11, 3)}
    assert find_nearest(axes, {"pe": "8,16", "model": "alexnet"}) == {}
    assert find_nearest(axes, {"pe": ["7", "17"], "inter_bandwidth": "25 GB/s"}) == {
        "pe": [8, 16],
        "inter_bandwidth": [pytest.approx(1e10)],
    }
    with pytest.raises(InputError, match="inter_bandwidth"):
        find_nearest(axes, {"inter_bandwidth": "25 s"})


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda ds: paradl.best(ds, {"pe": 65}), "^selection: no pe 65"),
        (lambda ds: paradl.best(ds, objective="cost"), "^price: "),
        (lambda ds: paradl.provision(ds, "2 parsecs", epochs=1), "^deadline: .*2 parsecs"),
        (lambda ds: paradl.provision(ds, -1, epochs=1), "^deadline: "),
        (lambda ds: paradl.needs(ds, "inter_latency"), "^efficiency: "),
        (
            lambda ds: paradl.compute_space("alexnet", system="abci", strategy="dta"),
            "^strategy: .*dta",
        ),
    ],
)
def test_messages_in_python_name_arguments(mixed, ask, message):
    with pytest.raises(InputError, match=message) as error:
        ask(mixed)
    assert "--" not in str(error.value)
