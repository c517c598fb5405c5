"""The answer of `place`: where operators run, when, and how sure it is."""

from typing import Annotated, Literal, NotRequired, TypedDict

from sweep.answers.types.facts import AnswerType, Fact
from sweep.answers.types.words import System

Pass = Literal["forward", "backward"]


class OperatorRow(TypedDict):
    """When an operator runs, and where; times are from the step's begin."""

    operator: Annotated[str, Fact("its name")]
    micro_batch: Annotated[int, Fact("of which micro-batch, from 0")]
    device: Annotated[int, Fact("where it runs, from 0")]
    pe: Annotated[int, Fact("the PE of the node that the device is")]
    forward_start: Annotated[
        float, Fact("when its forward pass begins, from the step's begin", "s")
    ]
    forward_end: Annotated[float, Fact("when its forward pass ends, from the step's begin", "s")]
    backward_start: Annotated[
        float, Fact("when its backward pass begins, from the step's begin", "s")
    ]
    backward_end: Annotated[float, Fact("when its backward pass ends, from the step's begin", "s")]


# Two of its keys are words of Python.
MessageRow = TypedDict(
    "MessageRow",
    {
        "pass": Annotated[Pass, Fact("of which pass")],
        "tensor": Annotated[str, Fact("the operator whose output, or its gradient, is sent")],
        "from": Annotated[int, Fact("the PE that sends")],
        "to": Annotated[int, Fact("the PE that receives")],
        "bytes": Annotated[float, Fact("its size", "B", scaled=True)],
        "sent": Annotated[float, Fact("when it leaves", "s")],
        "come": Annotated[float, Fact("when it is there", "s")],
    },
)


class TimeBounds(TypedDict):
    """Times that no placement falls below."""

    critical_path: Annotated[float, Fact("the longest chain of operators", "s")]
    work: Annotated[float, Fact("all operators' time over the devices", "s")]
    proven: Annotated[float, Fact("no step is shorter", "s")]


class PlacementRecord(TypedDict):
    """A placement, or that none fits in memory."""

    graph: Annotated[str, Fact("the graph, or the network")]
    system: System
    devices: Annotated[int, Fact("devices of the node that may be used")]
    pes: Annotated[list[int], Fact("the PEs that they are")]
    batch: Annotated[int, Fact("samples of a step; null: the graph does not say")] | None
    micro_batches: Annotated[int, Fact("into how many the step is divided")]
    samples: Annotated[list[int], Fact("samples of each")] | None
    times: Annotated[Literal["oracle", "measured"], Fact("where times of operators come from")]
    source: Annotated[list[str], Fact("where the graph comes from")]
    feasible: Annotated[bool, Fact("whether memory does; if not, only smallest_devices is told")]
    step_time: NotRequired[Annotated[float, Fact("time of a step", "s")]]
    forward_time: NotRequired[Annotated[float, Fact("of which the forward pass", "s")]]
    backward_time: NotRequired[Annotated[float, Fact("of which the backward pass", "s")]]
    serial_time: NotRequired[Annotated[float, Fact("time of a step on one device", "s")]]
    speedup: NotRequired[Annotated[float, Fact("serial_time over step_time")]]
    proven: NotRequired[Annotated[bool, Fact("whether no other placement is quicker")]]
    gap: NotRequired[Annotated[float, Fact("part of the step that another could save at most")]]
    bounds: NotRequired[Annotated[TimeBounds, Fact("what no placement is quicker than")]]
    interrupted: NotRequired[Annotated[bool, Fact("whether the search was stopped")]]
    memory: NotRequired[Annotated[list[float], Fact("what each device holds", "B", scaled=True)]]
    room: NotRequired[Annotated[float, Fact("what a device has room for", "B", scaled=True)]]
    fits_one: NotRequired[Annotated[bool, Fact("whether one device has room for all")]]
    sent_bytes: NotRequired[Annotated[float, Fact("what is sent, in both passes", "B")]]
    busiest_link: NotRequired[
        Annotated[float, Fact("part of the step that messages of a pair take one way, at most")]
    ]
    operators: NotRequired[Annotated[list[OperatorRow], Fact("a row an operator and micro-batch")]]
    messages: NotRequired[
        Annotated[list[MessageRow], Fact("a row a tensor, or gradient, that is sent")]
    ]
    smallest_devices: NotRequired[
        Annotated[int, Fact("the fewest that would do; null: not known in time")] | None
    ]


ANSWERS = {"place": AnswerType(PlacementRecord, record=True)}
