"""The catalogue's networks of sequences, layer by layer, against published counts."""

import csv
from pathlib import Path

from paradl.grids.library import find

FACTS = Path(__file__).parents[1] / "data" / "facts" / "recurrent_models.csv"


def read_layers(model: str) -> dict[str, int]:
    with FACTS.open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["model"] == model]
    return {row["item"]: int(row["value"]) for row in rows if row["kind"] == "layer"}


BIG_LSTM_ROWS = {
    "embedding": ["embedding1"],
    "lstm_0 gates": ["lstm_0.input", "lstm_0.recurrent"],
    "lstm_0 projection": ["lstm_0.projection"],
    "lstm_1 gates": ["lstm_1.input", "lstm_1.recurrent"],
    "lstm_1 projection": ["lstm_1.projection"],
}


def test_big_lstm_layer_by_layer() -> None:
    words = find("dataset", "one-billion-words", Path())
    table = find("model", "big_lstm", Path()).table(words)
    published = read_layers("biglstm_2x8192_1024")
    at = {name: row for row, name in enumerate(table.names)}
    counted = {
        item: int((table.w + table.bias)[[at[name] for name in names]].sum())
        for item, names in BIG_LSTM_ROWS.items()
    }
    softmax = at["sampled_softmax1.scores"]
    counted |= {"softmax_w": int(table.w[softmax]), "softmax_b": int(table.bias[softmax])}
    assert counted == published
    assert table.parameters == sum(published.values())


def test_vision_transformer_block() -> None:
    table = find("model", "vit_b_16", Path()).table(find("dataset", "imagenet", Path()))
    assert table.names[:3] == ("conv_proj", "class_token", "pos_embedding")
    assert table.names[-2:] == ("ln", "head")
    block = {name for name in table.names if name.startswith("encoder_layer_11.")}
    assert len(block) == 14
    rows = [row for row, name in enumerate(table.names) if name in block]
    assert (table.w + table.bias)[rows].sum() == 7_087_872  # as torchvision's
    assert table.depth == 1 + 12 * 6 + 1  # query, scores, context, output, two linear layers
