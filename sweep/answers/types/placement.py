"""Answer of `place`: where and when operators run, and how far from optimal that may be."""

from typing import Annotated, Literal, NotRequired, TypedDict

from sweep.answers.types.facts import AnswerType, Fact
from sweep.answers.types.words import System

Pass = Literal["forward", "backward"]


class OperatorRow(TypedDict):
    """When and where an operator runs; times count from the start of the step."""

    operator: Annotated[str, Fact("name of the operator")]
    micro_batch: Annotated[int, Fact("micro-batch, counted from 0")]
    device: Annotated[int, Fact("device, counted from 0")]
    pe: Annotated[int, Fact("the device's PE in the node")]
    forward_start: Annotated[float, Fact("start of the forward pass", "s")]
    forward_end: Annotated[float, Fact("end of the forward pass", "s")]
    backward_start: Annotated[float, Fact("start of the backward pass", "s")]
    backward_end: Annotated[float, Fact("end of the backward pass", "s")]


# Not a class: "pass" and "from" are keywords of Python.
MessageRow = TypedDict(
    "MessageRow",
    {
        "pass": Annotated[Pass, Fact("forward or backward pass")],
        "tensor": Annotated[str, Fact("the operator whose output, or its gradient, is sent")],
        "from": Annotated[int, Fact("the sending PE")],
        "to": Annotated[int, Fact("the receiving PE")],
        "bytes": Annotated[float, Fact("size of the message", "B", scaled=True)],
        "sent": Annotated[float, Fact("time of departure", "s")],
        "come": Annotated[float, Fact("time of arrival", "s")],
    },
)


class TimeBounds(TypedDict):
    """Lower bounds on the time of a step."""

    critical_path: Annotated[float, Fact("the longest chain of operators", "s")]
    work: Annotated[float, Fact("total time of all operators, divided by the devices", "s")]
    proven: Annotated[float, Fact("the best bound proven", "s")]


class PlacementRecord(TypedDict):
    """A placement, or the fact that none fits in memory."""

    graph: Annotated[str, Fact("the graph, or the network")]
    system: System
    devices: Annotated[int, Fact("devices that may be used")]
    pes: Annotated[list[int], Fact("the PEs of these devices in the node")]
    batch: Annotated[int, Fact("samples per step; null: the graph does not say")] | None
    micro_batches: Annotated[int, Fact("micro-batches per step")]
    samples: Annotated[list[int], Fact("samples of each micro-batch")] | None
    times: Annotated[Literal["oracle", "measured"], Fact("source of the operators' times")]
    source: Annotated[list[str], Fact("where the graph comes from")]
    feasible: Annotated[bool, Fact("whether memory suffices; if not, see smallest_devices")]
    step_time: NotRequired[Annotated[float, Fact("time per step", "s")]]
    forward_time: NotRequired[Annotated[float, Fact("time of the forward pass", "s")]]
    backward_time: NotRequired[Annotated[float, Fact("time of the backward pass", "s")]]
    serial_time: NotRequired[Annotated[float, Fact("time per step on one device", "s")]]
    speedup: NotRequired[Annotated[float, Fact("serial_time over step_time")]]
    proven: NotRequired[Annotated[bool, Fact("whether the placement is proven optimal")]]
    gap: NotRequired[Annotated[float, Fact("most that a better one could save, as a fraction")]]
    bounds: NotRequired[Annotated[TimeBounds, Fact("lower bounds on the time per step")]]
    interrupted: NotRequired[Annotated[bool, Fact("whether the search was stopped")]]
    memory: NotRequired[Annotated[list[float], Fact("memory used by device", "B", scaled=True)]]
    room: NotRequired[Annotated[float, Fact("usable memory of a device", "B", scaled=True)]]
    fits_one: NotRequired[Annotated[bool, Fact("whether all operators fit on one device")]]
    sent_bytes: NotRequired[Annotated[float, Fact("bytes sent in both passes", "B")]]
    busiest_link: NotRequired[
        Annotated[float, Fact("fraction of the step that the busiest link is in use, one way")]
    ]
    operators: NotRequired[
        Annotated[list[OperatorRow], Fact("one row per operator and micro-batch")]
    ]
    messages: NotRequired[
        Annotated[list[MessageRow], Fact("one row per tensor or gradient that is sent")]
    ]
    smallest_devices: NotRequired[
        Annotated[int, Fact("fewest devices that suffice; null: not found in time")] | None
    ]


ANSWERS = {"place": AnswerType(PlacementRecord, record=True)}
