import pytest

import sweep


@pytest.mark.parametrize("name", sweep.__all__)
def test_everything_promised_is_there(name):
    assert callable(getattr(sweep, name))


def test_nothing_else_is():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = sweep.nothing


def test_a_question_in_python(mixed_url):
    cube = sweep.open_dataset(mixed_url)
    assert sweep.limits(cube)["strategy"].nunique() == 6
    assert cube.paradl.efficiency.max() <= 1.0001
