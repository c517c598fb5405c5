"""Tables of words: their counts, how often they are read, and mistakes."""

import pytest
from steps import infer_table, list_column

from paradl.grids.reading.errors import InputError

T = 5
WORDS, PAIRS = (1, T), (2, T)
EMBEDDING = {"vocabulary": 100, "features": 4, "name": "words"}


def test_an_embedding_by_hand() -> None:
    table = infer_table({"embedding": EMBEDDING}, shape=WORDS)
    assert (table.x[0], table.y[0], table.w[0], table.bias[0]) == (T, T * 4, 400, 0)
    assert table.reads[0] == 1 / 3  # the gradient alone is as large as the table
    assert table.multipliers == ()


def test_a_vocabulary_of_the_data_set_in_shards() -> None:
    table = infer_table(
        {"embedding": {"vocabulary": "targets", "features": 4, "shards": 8}}, shape=WORDS
    )
    assert table.w[0] == 8 * 4  # of 7 words


def test_a_table_that_two_share_has_its_weights_once() -> None:
    table = infer_table(
        {"embedding": EMBEDDING | {"row": 1}},
        {"read": "sample"},
        {"embedding": EMBEDDING | {"row": 2, "shares": "words", "name": "b"}},
        shape=PAIRS,
    )
    assert list_column(table, "w") == [400, 0]
    assert table.inputs == ((-1,), (-1,))


def test_a_sampled_softmax_by_hand() -> None:
    table = infer_table({"sampled_softmax": {"classes": 100, "samples": 9, "shards": 8}})
    assert table.kinds == ("sampled_softmax", "softmax")
    assert list_column(table, "w") == [104 * 6, 0]
    assert list_column(table, "bias") == [100, 0]
    assert list_column(table, "y") == [T * 10, T * 10]
    assert table.flops[0] == 2 * T * 6 * 10
    assert table.x[0] == 2 * T * 6
    assert table.reads[0] == pytest.approx((1 + 2 * 9 / 104) / 3)


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([{"embedding": EMBEDDING}], "layer words: row:"),
        ([{"embedding": EMBEDDING | {"row": 3}}], "layer words: row:"),
        ([{"embedding": EMBEDDING | {"row": 1, "shares": "sample"}}], "layer words: shares:"),
        (
            [
                {"linear": {"features": 9, "name": "a"}},
                {"read": "sample"},
                {"embedding": EMBEDDING | {"row": 1, "shares": "a"}},
            ],
            "layer words: shares:",
        ),
        ([{"sampled_softmax": {"classes": 5, "samples": 9, "name": "a"}}], "layer a: samples:"),
    ],
)
def test_mistakes(steps: list[object], message: str) -> None:
    with pytest.raises(InputError) as error:
        infer_table(*steps, shape=PAIRS)
    assert str(error.value).startswith(f"net: {message}")
