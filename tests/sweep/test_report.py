import io
import json
from contextlib import redirect_stdout

import sweep
from sweep.progress import silent
from sweep.questions import catalogue
from sweep.report import announced, outline, show_entries, show_explanation
from sweep.store import plan_of

EXPLAINED = sweep.explain("alexnet", "data+spatial", 8, 64, dataset="imagenet")


def test_the_outline_counts(mixed_grid):
    text = outline(mixed_grid, plan_of(mixed_grid), 2)
    assert (
        "2 model x 2 dataset x 1 system x 6 strategy x 5 pe x 2 batch x 2 inter_bandwidth" in text
    )
    assert "480 (2 of 4 model-dataset pairs do not fit and cost nothing)" in text
    assert "blocks  4 of 1 x 1 x 1 x 6 x 5 x 2 x 2 cells" in text
    assert "for 2 workers" in text


def test_progress_is_announced_once(mixed_grid, capsys):
    plan = plan_of(mixed_grid)
    with announced(mixed_grid, 1, silent)(plan, 3):
        pass
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "resumed: 3 of 4 blocks were done" in shown.err


def test_an_explanation_has_three_parts(capsys):
    show_explanation(EXPLAINED, "table")
    out = capsys.readouterr().out
    assert "Terms" in out
    assert "Layers" in out
    assert "halo_exchange" in out
    assert "gathered_items" not in out  # zero throughout


def test_an_explanation_as_json_and_csv(capsys):
    show_explanation(EXPLAINED, "json")
    assert json.loads(capsys.readouterr().out) == EXPLAINED
    show_explanation(EXPLAINED, "csv")
    assert capsys.readouterr().out.startswith("layer,kind,x,y,weights,biases,split")


def printed(kind: str, form: str) -> str:
    with redirect_stdout(io.StringIO()) as out:
        show_entries(getattr(catalogue, kind)(), form)
    return out.getvalue()


def test_the_catalogue_fits_a_screen():
    for kind in ("models", "datasets", "systems", "strategies"):
        assert max(map(len, printed(kind, "table").splitlines())) <= 150


def test_levels_are_read_by_people_and_programs():
    assert "leaf, 68 PEs: 40.31 us, 12.5 GB/s" in printed("systems", "table")
    (abci,) = [row for row in json.loads(printed("systems", "json")) if row["system"] == "abci"]
    level = {"name": "leaf", "pes": 68, "latency": 40.31e-6, "bandwidth": 12.5e9}
    assert level in abci["levels"]
    assert abci["source"]


def test_the_catalogue_in_csv_has_sources():
    assert "source" in printed("models", "csv").splitlines()[0]
