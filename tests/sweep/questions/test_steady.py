"""The same question has the same answer, to the last digit, however often it is asked."""

import paradl

# What runs in numpy does so at any call (tests/kernels/test_compiled.py): a few show the rest.
TIMES = 4


def test_a_prediction_is_the_same_each_time() -> None:
    answers = {
        repr(
            paradl.predict(
                "alexnet", dataset="imagenet", strategy="data", pe=8, batch=32, system="abci"
            )
        )
        for _ in range(TIMES)
    }
    assert len(answers) == 1


def test_a_dataset_can_be_asked_for_its_best_as_often_as_one_likes() -> None:
    cells = paradl.compute_space(
        "alexnet",
        dataset="imagenet",
        system="abci",
        pe=[8],
        batch=[32],
        strategy=["data", "data+filter:group=2"],
    )
    assert len({repr(paradl.best(cells)) for _ in range(TIMES)}) == 1
