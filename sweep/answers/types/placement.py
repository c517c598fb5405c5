"""Answer of `place`: where and when operators run, and how far from optimal that may be."""

from typing import Annotated, Literal, NotRequired, TypedDict

from paradl.sweep.answers.types.facts import AnswerType, Bytes, Fact, Seconds
from paradl.sweep.answers.types.words import System

Pass = Literal["forward", "backward"]


class OperatorRow(TypedDict):
    """When and where an operator runs; times count from the start of the step."""

    operator: Annotated[str, "name of the operator"]
    micro_batch: Annotated[int, "micro-batch, counted from 0"]
    device: Annotated[int, "device, counted from 0"]
    pe: Annotated[int, "the device's PE in the node"]
    forward_start: Annotated[Seconds, "start of the forward pass"]
    forward_end: Annotated[Seconds, "end of the forward pass"]
    backward_start: Annotated[Seconds, "start of the backward pass"]
    backward_end: Annotated[Seconds, "end of the backward pass"]


# Not a class: "pass" and "from" are keywords of Python.
MessageRow = TypedDict(
    "MessageRow",
    {
        "pass": Annotated[Pass, "forward or backward pass"],
        "tensor": Annotated[str, "the operator whose output, or its gradient, is sent"],
        "from": Annotated[int, "the sending PE"],
        "to": Annotated[int, "the receiving PE"],
        "bytes": Annotated[Bytes, "size of the message"],
        "sent": Annotated[Seconds, "time of departure"],
        "come": Annotated[Seconds, "time of arrival"],
    },
)


class TimeBounds(TypedDict):
    """Lower bounds on the time of a step."""

    critical_path: Annotated[Seconds, "the longest chain of operators"]
    work: Annotated[Seconds, "total time of all operators, divided by the devices"]
    proven: Annotated[Seconds, "the best bound proven"]


class PlacementRecord(TypedDict):
    """A placement, or the fact that none fits in memory."""

    graph: Annotated[str, "the graph, or the network"]
    system: System
    devices: Annotated[int, "devices that may be used"]
    pes: Annotated[list[int], "the PEs of these devices in the node"]
    batch: Annotated[int, "samples per step; null: the graph does not say"] | None
    micro_batches: Annotated[int, "micro-batches per step"]
    samples: Annotated[list[int], "samples of each micro-batch"] | None
    times: Annotated[Literal["oracle", "measured"], "source of the operators' times"]
    source: Annotated[list[str], "where the graph comes from"]
    feasible: Annotated[bool, "whether memory suffices; if not, see smallest_devices"]
    # Of a placement that fits.
    step_time: NotRequired[Annotated[Seconds, "time per step"]]
    forward_time: NotRequired[Annotated[Seconds, "time of the forward pass"]]
    backward_time: NotRequired[Annotated[Seconds, "time of the backward pass"]]
    serial_time: NotRequired[Annotated[Seconds, "time per step on one device"]]
    speedup: NotRequired[Annotated[float, "serial_time over step_time"]]
    proven: NotRequired[Annotated[bool, "whether the placement is proven optimal"]]
    gap: NotRequired[Annotated[float, "most that a better one could save, as a fraction"]]
    bounds: NotRequired[Annotated[TimeBounds, "lower bounds on the time per step"]]
    interrupted: NotRequired[Annotated[bool, "whether the search was stopped"]]
    memory: NotRequired[Annotated[list[float], Fact("memory used by device", "B", scaled=True)]]
    room: NotRequired[Annotated[Bytes, "usable memory of a device"]]
    fits_one: NotRequired[Annotated[bool, "whether all operators fit on one device"]]
    sent_bytes: NotRequired[Annotated[float, Fact("bytes sent in both passes", "B")]]
    busiest_link: NotRequired[
        Annotated[float, "share of the step that the busiest link is used, one way"]
    ]
    operators: NotRequired[Annotated[list[OperatorRow], "one row per operator and micro-batch"]]
    messages: NotRequired[Annotated[list[MessageRow], "one row per tensor or gradient"]]
    # If none fits.
    smallest_devices: NotRequired[
        Annotated[int, "fewest devices that suffice; null: unknown, or no number does"] | None
    ]


ANSWERS = {"place": AnswerType(PlacementRecord, record=True)}
