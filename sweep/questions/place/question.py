"""Place: find the placement of a graph's operators with the least time per step."""

import math
from collections.abc import Iterable
from pathlib import Path

from paradl.grids.graphs.graph import Graph
from paradl.grids.graphs.links import Links, link_devices
from paradl.grids.inputs.partition import place_stages
from paradl.grids.library import find
from paradl.grids.placing.highs import SolverError
from paradl.grids.placing.pipelined_steps import Piped
from paradl.grids.placing.problem import Problem
from paradl.grids.placing.program import count_devices
from paradl.grids.placing.schedule import find_length
from paradl.grids.placing.solve import PlacementResult, Tell, count_nodes, solve
from paradl.grids.reading.errors import InputError, shorten
from paradl.grids.reading.units import parse_count
from paradl.grids.shorthands import expect_system
from paradl.kernels.options import Optimizer
from paradl.sweep.answers.mapping import AnswerMapping
from paradl.sweep.answers.types.hybrid import (
    MessageRow,
    OperatorRow,
    Pass,
    PlacementFields,
    PlacementRecord,
    PlanFields,
)
from paradl.sweep.errors import RunError
from paradl.sweep.questions.place.timed_graph import TimedGraph, choose_graph, pose_piped

MOST_EFFORT = 7 * 24 * 3600.0
# A gap this small counts as proven optimal: solvers are no more precise.
PROVEN = 1e-6


def place(
    what: str,
    devices: int | str,
    *,
    system: str | None = None,
    batch: int | str | None = None,
    dataset: str | None = None,
    optimizer: Optimizer = "sgd",
    micro_batches: int | str = 1,
    effort: float = 60.0,
    tell: Tell = lambda best, bound: None,
) -> AnswerMapping[PlacementRecord]:
    """Return the best placement for an effort, with its time per step and its proof.

    what: a model, by name or file, with a batch; or a graph, by name or file. micro_batches: of
    equal samples; they overlap. effort: about the seconds that an idle core takes, counted in
    schedules and nodes, so that a busy machine has the same answer.

    Times [s], bounds and the gap to them, memory [B] by device, operators and messages (`paradl
    schema place`). `feasible` is False if memory is proven too small; then the fewest sufficient
    devices are given.

    InputError: bad input, or an operator too large for every device. RunError: the effort did not
    suffice for a placement that fits, or HiGHS died.

    >>> import paradl
    >>> step = {"system": "abci", "batch": 32, "dataset": "imagenet-299"}
    >>> answer = paradl.place("inception_v3", 2, **step, effort=0.1)
    >>> answer["feasible"], round(answer["speedup"], 2)
    (True, 1.38)
    """
    if not 0 < effort <= MOST_EFFORT:
        raise InputError(
            f"expected more than 0 and at most {MOST_EFFORT:,.0f}, got {shorten(effort)}",
            where="effort",
        )
    system = str(expect_system(system))
    machine = find("system", system, Path())
    devices = parse_count(devices, "devices")
    links = link_devices(machine, devices)

    def ask(samples: int | None) -> TimedGraph:
        return choose_graph(what, machine, system, samples, dataset, optimizer)

    # The whole step, whose serial time speed-ups refer to, whatever its micro-batches.
    step = ask(None if batch is None else parse_count(batch, "batch"))
    count = parse_count(micro_batches, "micro_batches")
    graph, piped = pose_piped(step, count, links, ask)
    _expect_problem(step.graph, piped.whole)
    head: PlacementFields = {
        "graph": step.graph.name,
        "system": machine.name,
        "devices": devices,
        "pes": list(links.pes),
        "batch": step.graph.batch,
        "micro_batches": count,
        "samples": None if step.graph.batch is None else [step.graph.batch // count] * count,
        "times": step.times,
        "source": list(step.graph.source),
    }
    # Consecutive layers on each device, as a pipeline has them: the search starts from these, too.
    stages = place_stages(piped.whole) if piped.runs > 1 else []
    try:
        answer = solve(piped, effort, stages, tell)
        if answer.plan is None:
            return AnswerMapping({**head, **_explain_failure(piped.whole, answer, effort)})
    except SolverError as error:
        raise RunError(f"{error}: it may lack memory; ask again, or with more devices") from error
    return AnswerMapping({**head, **_describe(step.graph, graph, piped, links, answer)})


def _expect_problem(graph: Graph, problem: Problem) -> None:
    """Raise InputError if nothing takes time, or if an operator is too large for every device."""
    if not problem.serial > 0:
        raise InputError(
            "no operator takes any time", where=f"graph {shorten(graph.name)}", advice="time them"
        )
    largest = int(problem.least_memory.argmax())
    least = problem.least_memory[largest]
    if least > problem.room:
        name, inputs = graph.operators[largest].name, least > problem.held[largest]
        raise InputError(
            f"{shorten(name)} needs {least / 1e9:.6g} GB{' with its inputs' if inputs else ''}, "
            f"and a device has room for {max(problem.room, 0) / 1e9:.6g} GB",
            where=f"graph {shorten(graph.name)}",
            advice="operators are not divided: take fewer samples, or larger devices",
        )


def _explain_failure(problem: Problem, answer: PlacementResult, effort: float) -> PlanFields:
    """Return the fewest devices that suffice. RunError: whether any fits is unknown."""
    if not answer.impossible:
        reason = "interrupted" if answer.interrupted else f"an effort of {effort:g} was spent"
        raise RunError(
            f"{reason}: no placement was found that fits the devices' memory, nor proven that "
            "there is none; allow more effort, or more devices"
        )
    fewest = count_devices(problem, count_nodes(effort))
    return {"feasible": False, "smallest_devices": fewest}


def _describe(
    whole: Graph, graph: Graph, piped: Piped, links: Links, answer: PlacementResult
) -> PlanFields:
    """Return the plan and proof as plain data; whole: the graph of the undivided step."""
    plan, problem = answer.plan, piped.unrolled
    assert plan is not None
    # All micro-batches run on the same devices.
    placement = plan.placement * piped.runs
    # Passes of micro-batches overlap: the last one to end counts.
    lengths = [
        find_length(starts, durations)
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
        "bounds": {
            "critical_path": answer.bounds.critical_path,
            "work": answer.bounds.work,
            "proven": answer.bounds.proven,
        },
        "interrupted": answer.interrupted,
        "memory": piped.whole.measure_memory(plan.placement).tolist(),
        "room": piped.whole.room,
        # All operators on device 0.
        "fits_one": piped.whole.fits((0,) * len(whole)),
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
) -> Iterable[OperatorRow]:
    """Yield one row per operator: where and when it runs, from the start of the step [s].

    size: operators per micro-batch.
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
    graph: Graph,
    problem: Problem,
    links: Links,
    placement: tuple[int, ...],
    operators: list[OperatorRow],
) -> Iterable[MessageRow]:
    """Yield one row per tensor and receiving device, and one for the gradient sent back."""
    for number, tensor in enumerate(graph.tensors):
        source = placement[tensor.maker]
        for target in sorted({placement[taker] for taker in tensor.takers} - {source}):
            takers = [taker for taker in tensor.takers if placement[taker] == target]
            delay = float(problem.delays[number, source, target])
            made = operators[tensor.maker]["forward_end"]
            # Gradients of several takers on a device are added there and sent once.
            added = max(operators[taker]["backward_end"] for taker in takers)
            passes: tuple[tuple[Pass, float, tuple[int, int]], ...] = (
                ("forward", made, (source, target)),
                ("backward", added, (target, source)),
            )
            for name, sent, (begin, end) in passes:
                yield {
                    "pass": name,
                    "tensor": graph.operators[tensor.maker].name,
                    "from": links.pes[begin],
                    "to": links.pes[end],
                    "bytes": tensor.bytes,
                    "sent": sent,
                    "come": sent + delay,
                }


def _find_busiest(messages: list[MessageRow], step_time: float) -> float:
    """Return the fraction of the step for which the busiest link is in use, one way.

    Each message is timed as if it had the link to itself; above 1 the link is overcommitted.
    """
    busy: dict[tuple[int, int], float] = {}
    for message in messages:
        pair = (message["from"], message["to"])
        busy[pair] = busy.get(pair, 0.0) + message["come"] - message["sent"]
    return max(busy.values(), default=0.0) / step_time
