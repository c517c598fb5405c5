"""Keys of what `paradl calibrate` answers: the calibration, as its file has it."""

from sweep.show.answer_keys import COUNTS, NUMBER, RECORD, TEXT, TEXTS, Key
from sweep.show.answer_rows import Answer, describe_row, describe_rows

_SPREAD = "spread of the logarithm of what remains unexplained"
_ERROR = Answer(
    "serial group reduce exchange unseen distance",
    own={
        "serial": Key(NUMBER, f"{_SPREAD}, computing on one PE"),
        "group": Key(NUMBER, f"{_SPREAD}, computing in groups"),
        "reduce": Key(NUMBER, f"{_SPREAD}, exchange of gradients"),
        "exchange": Key(NUMBER, f"{_SPREAD}, what goes on inside groups"),
        "unseen": Key(NUMBER, "how much wider for a series that was not fitted"),
        "distance": Key(NUMBER, "and for each factor of two from its nearest PE count"),
    },
)
_SERIES = Answer(
    "model dataset strategy pe batch",
    own={
        "pe": Key(COUNTS, "PE counts of the runs"),
        "batch": Key(COUNTS, "samples per replica of the runs"),
    },
)
_LINE = {"type": "array", "items": NUMBER}
CALIBRATION = Answer(
    "name title source system oracle precision software parameters correlation serial "
    "architectures profile_factor profile_spread roofline_factor roofline_spread error series "
    "layers accuracy",
    own={
        "name": Key(TEXT, "the calibration's name"),
        "title": Key(TEXT, "what it is, in words"),
        "source": Key(TEXTS, "the files of runs that it was made of"),
        "software": Key(TEXT, "the software of the runs"),
        "parameters": Key(RECORD, "by name: value, spread of its logarithm, determined"),
        "correlation": Key(
            {"type": "array", "items": _LINE}, "of their logarithms: a lower triangle, in order"
        ),
        "serial": Key(RECORD, "by model: factor on the time on one PE, and its spread"),
        "architectures": Key(RECORD, "by model: the fingerprint of the network that ran"),
        "profile_factor": Key(NUMBER, "factor on a model's time that was profiled, and not run"),
        "roofline_factor": Key(NUMBER, "factor on a model's time that was neither"),
        "profile_spread": Key(NUMBER, "spread of a model's time that was profiled, and not run"),
        "roofline_spread": Key(NUMBER, "spread of a model's time that was neither"),
        "error": Key(describe_row(_ERROR), "what remains unexplained"),
        "series": Key(describe_rows(_SERIES), "runs that were fitted"),
        "layers": Key(TEXTS, "kinds of layers that multiply, of all networks that ran"),
        "accuracy": Key(RECORD, "by what was left out: rows, accuracies, shares in intervals"),
    },
    record=True,
)
