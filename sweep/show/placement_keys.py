"""Keys of what `paradl place` answers: where operators run, when, and how sure it is."""

from sweep.show.answer_keys import COUNT, COUNTS, FLAG, NUMBER, NUMBERS, TEXT, TEXTS, Key
from sweep.show.answer_rows import Answer, describe_row, describe_rows

_PASS = {"enum": ["forward", "backward"]}
_OPERATORS = Answer(
    "operator micro_batch device pe forward_start forward_end backward_start backward_end",
    own={
        "operator": Key(TEXT, "its name"),
        "micro_batch": Key(COUNT, "of which micro-batch, from 0"),
        "device": Key(COUNT, "where it runs, from 0"),
        "pe": Key(COUNT, "the PE of the node that the device is"),
        **{
            f"{each}_{end}": Key(NUMBER, f"when its {each} pass {word}, from the step's begin", "s")
            for each in ("forward", "backward")
            for end, word in (("start", "begins"), ("end", "ends"))
        },
    },
)
_MESSAGES = Answer(
    "pass tensor from to bytes sent come",
    own={
        "pass": Key(_PASS, "of which pass"),
        "tensor": Key(TEXT, "the operator whose output, or its gradient, is sent"),
        "from": Key(COUNT, "the PE that sends"),
        "to": Key(COUNT, "the PE that receives"),
        "bytes": Key(NUMBER, "its size", "B"),
        "sent": Key(NUMBER, "when it leaves", "s"),
        "come": Key(NUMBER, "when it is there", "s"),
    },
)
_BOUNDS = Answer(
    "critical_path work proven",
    own={
        "critical_path": Key(NUMBER, "the longest chain of operators", "s"),
        "work": Key(NUMBER, "all operators' time over the devices", "s"),
        "proven": Key(NUMBER, "no step is shorter", "s"),
    },
)
_FOUND = (
    "step_time forward_time backward_time serial_time speedup proven gap bounds interrupted memory "
    "room fits_one sent_bytes busiest_link operators messages"
)
PLACEMENT = Answer(
    "graph system devices pes batch? micro_batches samples? times source feasible",
    f"{_FOUND} smallest_devices?",
    own={
        "graph": Key(TEXT, "the graph, or the network"),
        "devices": Key(COUNT, "devices of the node that may be used"),
        "pes": Key(COUNTS, "the PEs that they are"),
        "batch": Key(COUNT, "samples of a step; null: the graph does not say"),
        "micro_batches": Key(COUNT, "into how many the step is divided"),
        "samples": Key(COUNTS, "samples of each"),
        "times": Key({"enum": ["oracle", "measured"]}, "where times of operators come from"),
        "source": Key(TEXTS, "where the graph comes from"),
        "feasible": Key(FLAG, "whether memory does; if not, only smallest_devices is told"),
        "smallest_devices": Key(COUNT, "the fewest that would do; null: not known in time"),
        "step_time": Key(NUMBER, "time of a step", "s"),
        "forward_time": Key(NUMBER, "of which the forward pass", "s"),
        "backward_time": Key(NUMBER, "of which the backward pass", "s"),
        "serial_time": Key(NUMBER, "time of a step on one device", "s"),
        "speedup": Key(NUMBER, "serial_time over step_time"),
        "proven": Key(FLAG, "whether no other placement is quicker"),
        "gap": Key(NUMBER, "part of the step that another could save at most"),
        "bounds": Key(describe_row(_BOUNDS), "what no placement is quicker than"),
        "interrupted": Key(FLAG, "whether the search was stopped"),
        "memory": Key(NUMBERS, "what each device holds", "B"),
        "room": Key(NUMBER, "what a device has room for", "B"),
        "fits_one": Key(FLAG, "whether one device has room for all"),
        "sent_bytes": Key(NUMBER, "what is sent, in both passes", "B"),
        "busiest_link": Key(
            NUMBER, "part of the step that messages of a pair take one way, at most"
        ),
        "operators": Key(describe_rows(_OPERATORS), "a row an operator and micro-batch"),
        "messages": Key(describe_rows(_MESSAGES), "a row a tensor, or gradient, that is sent"),
    },
    record=True,
)
