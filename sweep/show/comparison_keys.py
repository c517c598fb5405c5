"""Keys of a measured run beside its prediction, as `paradl compare` prints them."""

from sweep.show.answer_keys import COUNT, FLAG, NUMBER, RECORD, TEXT, Key
from sweep.show.answer_rows import PLACE, Answer

_PARTS = {"total": "of an iteration", "comp": "computing", "comm": "communicating"}
_SUFFIXES = {"": "total", "_comp": "comp", "_comm": "comm"}
_SECONDS = {"measured": "measured", "predicted": "predicted", "authors": "predicted by the authors"}
_RATES = {"accuracy": "prediction", "authors_accuracy": "authors' prediction"}
_RUN_KEYS = {
    **{
        f"{name}_{part}": Key(NUMBER, f"time {of}, {told}", "s")
        for name, told in _SECONDS.items()
        for part, of in _PARTS.items()
    },
    **{
        f"{name}_{part}": Key(NUMBER, f"accuracy of the {told}, {part}: 1 is exact")
        for name, told in _RATES.items()
        for part in _PARTS
    },
    **{
        f"p{percent}{suffix}": Key(NUMBER, f"{percent}th percentile of predicted_{part}", "s")
        for suffix, part in _SUFFIXES.items()
        for percent in (10, 50, 90)
    },
    **{
        f"within{suffix}": Key(FLAG, f"whether measured_{part} lies between p10 and p90")
        for suffix, part in _SUFFIXES.items()
    },
    "measured_memory": Key(NUMBER, "memory of a PE, measured", "B"),
    "predicted_memory": Key(NUMBER, "memory of a PE, predicted", "B"),
    "accuracy_memory": Key(NUMBER, "accuracy of the predicted memory: 1 is exact"),
    "source": Key(TEXT, "where it was measured"),
    "note": Key(TEXT, "what is said of it"),
    "anomaly": Key(RECORD, "where it stands out: part, factor, term, what and the likely cause"),
}
RUNS = Answer(
    f"{PLACE} p samples_per_replica source? note? limit reason? anomaly? extrapolation "
    + " ".join(f"{key}?" for key in _RUN_KEYS if key not in ("source", "note", "anomaly")),
    own=_RUN_KEYS
    | {
        "p": Key(COUNT, "PEs"),
        "samples_per_replica": Key(NUMBER, "samples per replica"),
    },
)
