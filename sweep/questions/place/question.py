"""Place: the operators of a graph on devices, with the least time of a step."""

import math
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from grids.entries.precision import Optimizer
from grids.graphs.graph import Graph
from grids.graphs.links import Links, link_devices
from grids.inputs.stage_placements import place_stages
from grids.library import find
from grids.placing.packing import count_devices
from grids.placing.problem import Problem
from grids.placing.solve import PlacementResult, Tell, solve
from grids.reading.errors import InputError, shorten
from sweep.errors import RunError
from sweep.questions.place.micro_batches import (
    PosedStep,
    Sizes,
    divide_samples,
    pose_piped,
)
from sweep.questions.place.timed_graph import TimedGraph, choose_graph

Row = dict[str, Any]
MOST_SECONDS = 7 * 24 * 3600.0
# A plan this near to its bound is proven: solvers are no more precise.
PROVEN = 1e-6


def place(
    what: str,
    devices: int,
    *,
    system: str = "abci",
    batch: int | None = None,
    dataset: str | None = None,
    optimizer: Optimizer = "sgd",
    micro_batches: Sizes | None = None,
    time_limit: float = 60.0,
    tell: Tell = lambda best, bound: None,
) -> Row:
    """The best placement found in `time_limit` seconds, with its step's time and its proof.

    what: a model of the catalogue, or a file of one, with a batch; or a graph's name or file.
    micro_batches: their number, or the samples of each; their steps overlap.
    Keys: step_time, forward_time, backward_time, serial_time [s]; speedup; gap, the part of the
    step that a better placement could save at most; bounds [s]; memory [B] by device; operators and
    messages, a row each and micro-batch. `feasible` is False where the memory is proven too small,
    with the fewest devices that are enough.
    InputError: bad input, an operator that no device has room for. RunError: out of time without
    any placement that fits.
    """
    _expect_limit(time_limit)
    machine = find("system", system, Path())
    links = link_devices(machine, devices)

    def ask(samples: int | None) -> TimedGraph:
        return choose_graph(what, machine, system, samples, dataset, optimizer)

    asked = ask(batch)
    division = divide_samples(micro_batches, asked.graph.batch)
    posed = pose_piped(asked, division, links, ask)
    _expect_problem(asked.graph, posed.piped.whole)
    head = {
        "graph": asked.graph.name,
        "system": machine.name,
        "devices": devices,
        "pes": list(links.pes),
        "batch": asked.graph.batch,
        "micro_batches": len(division),
        "samples": division.samples,
        "times": asked.times,
        "source": list(asked.graph.source),
    }
    piped = posed.piped
    stages = place_stages(piped.whole) if piped.runs > 1 else []
    answer = solve(piped, time_limit, stages, tell)
    if answer.plan is None:
        return head | _explain_failure(piped.whole, answer, time_limit)
    return head | _describe(asked.graph, posed, links, answer)


def _expect_limit(limit: float) -> None:
    """InputError: a time limit out of bounds."""
    if not 0 < limit <= MOST_SECONDS:
        raise InputError(
            f"expected seconds, more than 0 and at most {MOST_SECONDS:,.0f}, got {shorten(limit)}",
            where="time_limit",
        )


def _expect_problem(graph: Graph, problem: Problem) -> None:
    """InputError: nothing takes time, or an operator has no room on any device."""
    if not problem.serial > 0:
        raise InputError(
            "no operator takes any time", where=f"graph {shorten(graph.name)}", advice="time them"
        )
    largest = int(problem.held.argmax())
    if problem.held[largest] > problem.room:
        raise InputError(
            f"{shorten(graph.operators[largest].name)} needs {problem.held[largest] / 1e9:.4g} GB, "
            f"and a device has room for {max(problem.room, 0) / 1e9:.4g} GB",
            where=f"graph {shorten(graph.name)}",
            advice="an operator is not divided: take fewer samples, or larger devices",
        )


def _explain_failure(problem: Problem, answer: PlacementResult, limit: float) -> Row:
    """The fewest devices that are enough. RunError: not known whether any placement fits."""
    if not answer.impossible:
        reason = "interrupted" if answer.interrupted else f"out of time after {limit:g} s"
        raise RunError(
            f"{reason}: no placement is known that fits the devices' memory, and it is not proven "
            "that none does; allow more time, or more devices"
        )
    return {"feasible": False, "smallest_devices": _count_within(problem, limit)}


def _count_within(problem: Problem, limit: float) -> int | None:
    """The fewest devices that the graph fits; None: not known after as much time again."""
    end = time.monotonic() + limit
    return count_devices(problem, lambda: end - time.monotonic())


def _describe(whole: Graph, posed: PosedStep, links: Links, answer: PlacementResult) -> Row:
    """The plan and its proof as plain data; whole: the graph of a step at once."""
    plan, graph, problem = answer.plan, posed.graph, posed.piped.unrolled
    assert plan is not None
    placement = plan.placement * posed.piped.runs
    lengths = [
        max(start + duration for start, duration in zip(starts, durations, strict=True))
        for starts, durations in zip(plan.starts, problem.durations.tolist(), strict=True)
    ]
    gap = max(0.0, 1 - answer.bounds.proven / plan.time)
    proven = gap <= PROVEN
    operators = list(_list_operators(graph, links, placement, plan.starts, lengths, len(whole)))
    messages = list(_list_messages(graph, problem, links, placement, operators))
    return {
        "feasible": True,
        "step_time": plan.time,
        "forward_time": lengths[0],
        "backward_time": lengths[1],
        "serial_time": whole.serial_time,
        "speedup": whole.serial_time / plan.time,
        "proven": proven,
        "gap": 0.0 if proven else gap,
        "bounds": answer.bounds._asdict(),
        "interrupted": answer.interrupted,
        "memory": posed.piped.whole.measure_memory(plan.placement).tolist(),
        "room": posed.piped.whole.room,
        "fits_one": posed.piped.whole.fits((0,) * len(whole)),
        "sent_bytes": math.fsum(message["bytes"] for message in messages),
        "busiest_link": _find_busiest(messages, plan.time),
        "operators": operators,
        "messages": messages,
    }


def _list_operators(
    graph: Graph,
    links: Links,
    placement: Iterable[int],
    starts: tuple[tuple[float, ...], ...],
    lengths: list[float],
    size: int,
) -> Iterable[Row]:
    """A row per operator: where it runs, and when, from the beginning of the step [s].

    size: operators of a micro-batch.
    """
    rows = zip(graph.operators, placement, *starts, strict=True)
    for position, (operator, device, start, mirrored) in enumerate(rows):
        # The backward pass is planned in reverse, from its end.
        backward = sum(lengths) - mirrored - operator.backward
        yield {
            "operator": operator.name,
            "micro_batch": position // size,
            "device": device,
            "pe": links.pes[device],
            "forward_start": start,
            "forward_end": start + operator.forward,
            "backward_start": backward,
            "backward_end": backward + operator.backward,
        }


def _list_messages(
    graph: Graph, problem: Problem, links: Links, placement: tuple[int, ...], operators: list[Row]
) -> Iterable[Row]:
    """A row for each tensor and device that it is sent to, and for its gradient on its way back."""
    for number, tensor in enumerate(graph.tensors):
        here = placement[tensor.maker]
        for there in sorted({placement[taker] for taker in tensor.takers} - {here}):
            takers = [taker for taker in tensor.takers if placement[taker] == there]
            delay = float(problem.delays[number, here, there])
            made = operators[tensor.maker]["forward_end"]
            # Gradients of several takers are added where they are, and sent once.
            added = max(operators[taker]["backward_end"] for taker in takers)
            for name, sent, (begin, end) in (
                ("forward", made, (here, there)),
                ("backward", added, (there, here)),
            ):
                yield {
                    "pass": name,
                    "tensor": graph.operators[tensor.maker].name,
                    "from": links.pes[begin],
                    "to": links.pes[end],
                    "bytes": tensor.bytes,
                    "sent": sent,
                    "come": sent + delay,
                }


def _find_busiest(messages: list[Row], step_time: float) -> float:
    """The part of the step that the messages of the busiest pair of devices take one way.

    Messages are timed as if each had its link for itself; more than 1 is more than a link can do.
    """
    busy: dict[tuple[int, int], float] = {}
    for message in messages:
        pair = (message["from"], message["to"])
        busy[pair] = busy.get(pair, 0.0) + message["come"] - message["sent"]
    return max(busy.values(), default=0.0) / step_time
