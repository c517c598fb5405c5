"""Predict: the oracle's answer for one configuration, or for many as a Dataset."""

import math
from collections.abc import Mapping
from typing import Any, Unpack, cast

from paradl.grids.convergence.catalogue import explain_missing, find_convergence
from paradl.grids.design_space import (
    ONLY,
    Configuration,
    expect_mapping,
    has_several,
    make_product,
)
from paradl.grids.entries.transformer_rates import describe_times, find_recipe
from paradl.grids.grid import LABELS, Grid
from paradl.grids.inputs.workload import Workload
from paradl.grids.models.architecture import describe_profile
from paradl.grids.notes import list_warnings
from paradl.grids.reading.errors import InputError
from paradl.grids.shorthands import Shorthands, Words, expect_words
from paradl.kernels.arrays import use_numpy
from paradl.kernels.configuration.answers import Answer
from paradl.kernels.configuration.case import Case
from paradl.kernels.names.flags import FORBIDS, UNSUPPORTED
from paradl.kernels.oracle.answer import answer_case, settle_choices
from paradl.kernels.oracle.iteration import count_fed
from paradl.kernels.parallelism.layout import list_degrees
from paradl.sweep.answers.mapping import AnswerMapping
from paradl.sweep.answers.numbers import finite, number
from paradl.sweep.answers.objectives import Price, check_price, count_hours, look_up_price
from paradl.sweep.answers.types.facts import list_fields
from paradl.sweep.answers.types.prediction import (
    BasisFields,
    GroupFields,
    LayoutFields,
    Prediction,
)
from paradl.sweep.answers.types.words import CostFields, LayoutRates, SampleRates
from paradl.sweep.boundaries.fits import find_smallest_group
from paradl.sweep.cells.memory_cube import compute_cells
from paradl.sweep.cells.space import name_labels, take_cell
from paradl.sweep.configurations.degrees import list_rates
from paradl.sweep.configurations.fitting import find_memory_chance
from paradl.sweep.configurations.layout_cells import LayoutTimes, find_cell
from paradl.sweep.configurations.row_cases import parameters
from paradl.sweep.cube.variables import name_limits
from paradl.sweep.engine.resources import keep_programs
from paradl.sweep.explanation.kinds import measure_parts
from paradl.sweep.uncertainty.intervals import list_intervals

# Images per second of a node, that PyTorch's loaders fed to a DGX A100 (docs/accuracy.md, Input).
FED = 16_600
LARGE_IMAGE = 3 * 128 * 128  # items; smaller ones are not decoded from photographs


def predict(
    model: Any,
    strategy: Any,
    pe: Any,
    batch: Any = None,
    *,
    system: Any = None,
    dataset: Any = None,
    parameters: Mapping[str, object] | None = None,
    settings: Mapping[str, object] | None = None,
    price: Price = None,
    **words: Unpack[Words],
) -> Any:
    """Times [s], memory [bytes] and limits of one configuration, as `paradl predict` prints them.

    Arguments are those of `Configuration`, with the words of `compute_space`. If one of them, or a
    parameter, has several values (a list, a range, an array), the answer is a Dataset over all
    combinations: a cube as `run` makes them, in memory. price: of a PE-hour, for the `cost` of a
    single answer; a cube has `ds.paradl.cost`. InputError: an unknown name, a bad value.

    >>> import paradl
    >>> answer = paradl.predict("alexnet", "data", 64, 32, system="abci", dataset="imagenet-226")
    >>> round(answer["epoch_time"], 1), answer["feasible"]
    (80.6, True)
    """
    expect_words(predict, words)
    asked = {"model": model, "system": system, "batch": batch, "dataset": dataset}
    divided = {"strategy": strategy, "pe": pe}
    fixed = expect_mapping(parameters, "parameters")
    # For a label, a mapping is one entry, such as a model in full.
    if any(
        has_several(value) and not (name in LABELS and isinstance(value, Mapping))
        for name, value in {**fixed, **asked, **divided, **words}.items()
    ):
        if price is not None:
            what = "a price is for one configuration"
            raise InputError(what, where="price", advice="ask the answer: ds.paradl.cost(price)")
        named, stated = Shorthands(**words).write(asked)
        stated |= expect_mapping(settings, "settings")
        return compute_cells(make_product({**named, **divided}, fixed, stated))
    wanted = Configuration(
        model, strategy, pe, batch, system, dataset, parameters, settings, **words
    )
    return AnswerMapping(answer_grid(wanted.grid(), price))


def answer_grid(grid: Grid, price: Price = None) -> Prediction:
    """Answer for the one configuration of `grid`, including the smallest group that fits.

    price: of a PE-hour, for its cost.
    """
    check_price(price)
    answer = predict_grid(grid)
    answer["smallest_group"] = find_smallest_group(grid, ONLY)
    if (paid := look_up_price(price, answer["system"])) is not None:
        seconds = answer["epoch_time"] if answer["epochs"] is None else answer["train_time"]
        answer["cost"] = None if seconds is None else paid * count_hours(answer["pe"], seconds)
    return answer


def predict_grid(grid: Grid) -> Prediction:
    """Answer for the one configuration of `grid`, without trying other groups."""
    return describe_case(grid, choose_case(grid))


def choose_case(grid: Grid) -> Case | None:
    """Case of the one configuration of `grid`, with the choices of `best` settled.

    None if the samples do not fit the model.
    """
    keep_programs()
    case = grid.ask_intervals().case(ONLY)
    return None if case is None else settle_choices(case)


def describe_case(grid: Grid, case: Case | None) -> Prediction:
    """Answer for the case that `choose_case` made of `grid`."""
    labels = name_labels(*(grid.labels[dim][0] for dim in LABELS))
    pe = int(grid.axes["pe"][0])
    if case is None:
        return {**labels, "pe": pe, **MISFIT, **describe_basis(grid)}
    # Evaluate the choice of `group=best` by itself, so that the answer equals that of `group=N`: a
    # program of all choices may round the last bit differently.
    answer = answer_case(case)
    iterations, limit = number(answer.iterations), int(number(answer.limit))
    comp, comm = number(answer.compute), number(answer.communication)
    epochs = None if answer.epochs is None else number(answer.epochs)
    memory = finite(number(answer.memory))
    fits = find_memory_chance(grid, ONLY, take_cell(grid.axes, [0] * len(grid.axes)), memory)
    details: GroupFields | LayoutDetails = (
        _describe_layout(grid, case, answer, fits)
        if grid.find_blocks(ONLY)
        else _describe_group(grid, case, answer)
    )
    return {
        **labels,
        "pe": pe,
        "replicas": int(number(answer.replicas)),
        "group": int(number(answer.group)),
        "segments": int(number(answer.segments)),
        "batch": number(answer.batch),
        "global_batch": number(answer.global_batch),
        "samples": number(case.run.samples),
        "iterations": iterations,
        "comp_time": finite(comp),
        "comm_time": finite(comm),
        "epoch_time": finite(comp + comm),
        "epochs": None if epochs is None else finite(epochs),
        # None, too, if the batch never converges.
        "train_time": None if epochs is None else finite(epochs * number(answer.epoch_time)),
        "iteration_time": finite((comp + comm) / iterations),
        "iteration_comp_time": finite(comp / iterations),
        "iteration_comm_time": finite(comm / iterations),
        "memory": memory,
        "memory_capacity": number(case.pe.memory_capacity),
        "fits": fits,
        "feasible": not limit & FORBIDS,
        "limit": name_limits(limit),
        **describe_basis(grid),
        "input": _describe_input(grid, case, answer),
        "terms": {name: finite(number(value)) for name, value in vars(answer.terms).items()},
        **_list_rates(grid, answer),
        **details,
        **list_intervals(grid, answer),
        **CostFields(),
        "smallest_group": None,
    }


# Answer for samples that do not fit the model.
MISFIT = cast(
    Prediction,
    {
        **{name: None for name, field in list_fields(Prediction).items() if field.nullable},
        "degrees": {},
        "memory_parts": {},
        "feasible": False,
        "limit": ["incompatible"],
        "terms": {},
        "parameters": {},
        "extrapolation": [],
    },
)


def _list_rates(grid: Grid, answer: Answer) -> SampleRates:
    """Samples per second and MFU; the layout of a network with blocks has an MFU of its own."""
    cell = {name: float(values[0]) for name, values in grid.axes.items()}
    seconds = number(answer.epoch_time) / number(answer.iterations)
    return list_rates(grid, ONLY, cell, number(answer.global_batch), seconds)


def _measure_parts(
    grid: Grid, case: Case, answer: Answer
) -> tuple[dict[str, float | None], int | None]:
    parts, largest = measure_parts(grid, case, ONLY)
    # What cannot exist has no memory.
    exists = math.isfinite(number(answer.memory))
    return {name: size if exists else None for name, size in parts.items()}, largest


def _describe_group(grid: Grid, case: Case, answer: Answer) -> GroupFields:
    """The degrees of a group, its memory by part, and what formulas were evaluated with."""
    strategy = grid.strategy(ONLY)
    data = {"data": case.run.replicas} if strategy.replicated else {}
    degrees = data | list_degrees(strategy.parts, case.run)
    parts, largest = _measure_parts(grid, case, answer)
    return {
        "degrees": {name: int(number(degree)) for name, degree in degrees.items()},
        "memory_parts": parts,
        "largest_batch": largest,
        "parameters": parameters(case),
    }


class LayoutDetails(LayoutTimes, LayoutRates, LayoutFields, GroupFields):
    """The same of a transformer's layout, and what it replaces."""

    limit: list[str]


def _describe_layout(grid: Grid, case: Case, answer: Answer, fits: float | None) -> LayoutDetails:
    """The same of a transformer's layout; its largest micro-batch is no question of the batch."""
    cell = find_cell(grid, case, ONLY)
    iterations = number(answer.iterations)
    # A layout has times even if its PEs are not those of the cell.
    exists = math.isfinite(number(answer.epoch_time))
    exchanges = cell.measure_exchanges() if exists else {}
    parts, largest = _measure_parts(grid, case, answer)
    # Of an epoch, over its iterations, they would have another last bit.
    times: LayoutTimes = cell.times if exists else {}
    lacks = [UNSUPPORTED] if cell.is_unsupported else []
    return {
        **times,
        "limit": [*name_limits(int(number(answer.limit))), *lacks],
        "layout": cell.words,
        **cell.describe(fits),
        "stage": cell.fullest_stage,
        "exchanges": {name: seconds * iterations for name, seconds in exchanges.items()},
        "bubble_share": finite(number(answer.terms.pipeline_bubble / answer.epoch_time)),
        "degrees": cell.degrees,
        "memory_parts": parts,
        "largest_batch": largest,
        "parameters": cell.list_parameters(),
        "obstacles": cell.list_obstacles(),
    }


def describe_basis(grid: Grid) -> BasisFields:
    """Basis of an answer: oracle, precision, software, and sources of times and epochs.

    `notes`: keys of files that the oracle ignores, and other oddities.
    """
    workload = grid.workload(*ONLY[:3])
    return {
        "oracle": grid.spec.oracle,
        "precision": grid.systems[0].precision,
        "software": grid.systems[0].software,
        "times": _name_times(grid, workload),
        "profile": _name_profile(grid, workload),
        "convergence": _name_convergence(grid),
        "notes": list_warnings(grid),
    }


def _describe_input(grid: Grid, case: Case, answer: Answer) -> str | None:
    """What hosts must feed, if no rate is stated and published loaders feed less; else None.

    None of layouts, too, which wait for no input.
    """
    shape, options = grid.datasets[0].shape, case.options
    are_large = len(shape) == 3 and math.prod(shape) >= LARGE_IMAGE
    if options.oracle == "paper" or options.waits_for_input or case.of_blocks or not are_large:
        return None
    with use_numpy():
        samples = number(count_fed(case))
    rate = samples * number(answer.iterations) / number(answer.epoch_time)
    if not FED < rate < math.inf:
        return None
    fed = f"PyTorch: {FED:,} of ImageNet"
    return f"{rate:,.0f} samples/s per node, unbounded: state input_rate ({fed})"


def _name_times(grid: Grid, workload: Workload | None) -> str:
    """Where the times of one PE come from."""
    system, blocks = grid.systems[0], grid.find_blocks(ONLY)
    if workload is not None and blocks:
        return describe_times(system, find_recipe(system), blocks.family, workload.layout_time)
    return "measured" if workload is not None and workload.seconds is not None else "roofline"


def _name_convergence(grid: Grid) -> str:
    """The measured epochs that an answer uses, or why there are none."""
    model, dataset = grid.labels["model"][0], grid.labels["dataset"][0]
    law = grid.convergences.get((model, dataset))
    if law is not None:
        batches = f"B = {law.smallest:,} to {law.largest:,}" if law.points else "a stated law"
        return f"{law.target}, {batches}" + "".join(f"; {source}" for source in law.source)
    if find_convergence(model, dataset) is None:
        return f"none: {explain_missing(model, dataset)}"
    return "none: measured epochs are known but not used; convergence auto uses them"


def _name_profile(grid: Grid, workload: Workload | None) -> str:
    """The measurement that the layers' times come from, or why there is none."""
    system, model = grid.systems[0], grid.models[0]
    if workload is not None and workload.profile is not None:
        return describe_profile(workload.profile)
    if workload is not None and workload.seconds is not None:
        return f"the times of {model.name}"  # Table III: times on one PE, whatever the batch
    if grid.spec.times == "roofline":
        return "none: times come from the roofline"
    measured = sorted({str(profile.precision) for profile in model.profiles_on(system.pe.device)})
    if measured:
        return f"none: measured in {', '.join(measured)}, but the system is in {system.precision}"
    return f"none: {model.name} was not measured on {system.pe.device or system.name}"
