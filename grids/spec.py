"""Spec: the user's description of a design space, validated.

Its form is checked, its units are read and its axes expanded. What it names (models, systems ...)
is looked up when the grid is made. The oracle `paper` is Table III of ParaDL verbatim; `machine`
models machines in detail (docs/machine.md).
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationInfo,
    create_model,
    field_validator,
    model_validator,
)

from paradl.grids.axes import Axis, Range, describe_axis
from paradl.grids.entries.entry import Name, Record, Texts, list_one
from paradl.grids.entries.names import refuse_config
from paradl.grids.entries.parameters import PARAMETERS, read_parameters
from paradl.grids.entries.strategies import parse_strategy
from paradl.grids.entries.strategy_words import TABLE_III
from paradl.grids.outputs import INTERVALS, MAIN_OUTPUTS, check_outputs, list_trained, list_unknown
from paradl.grids.placing.group import Placements
from paradl.grids.reading.errors import shorten
from paradl.grids.reading.yamlfile import Document, load, validate
from paradl.grids.rows import Rows, RowsAxis
from paradl.kernels.options import (
    Attention,
    ContextExchange,
    KeptStates,
    LossLogits,
    Offload,
    Optimizer,
    OracleName,
)


def _expect_some(value: object) -> object:
    """Return the entries of an axis, at least one; a single entry needs no list."""
    if value in ([], ()):
        raise ValueError("expected at least one entry, got an empty list")
    return list_one(value)


def _expect_reference(value: object) -> object:
    if not isinstance(value, str | dict):
        raise ValueError(f"expected a name, a file or a definition, got {shorten(value)}")
    return value


def _check_strategy(text: str) -> str:
    parse_strategy(text)
    return text


# A name of the catalogue, a file, or a definition written out in the spec.
Reference = Annotated[str | dict[str, object], BeforeValidator(_expect_reference)]
StrategyName = Annotated[str, AfterValidator(_check_strategy)]
# At most 1,000: names must be unique, and comparing takes quadratic time.
Some = Field(min_length=1, max_length=1000)
ListedReferences = Annotated[tuple[Reference, ...], Some]
ListedNames = Annotated[tuple[StrategyName, ...], Some]
References = Annotated[
    ListedReferences,
    BeforeValidator(_expect_some, json_schema_input_type=Reference | ListedReferences),
]
StrategyNames = Annotated[
    ListedNames, BeforeValidator(_expect_some, json_schema_input_type=StrategyName | ListedNames)
]


AnyAxes = TypeVar("AnyAxes", bound=Record)


def _add_numeric_axes(form: type[AnyAxes]) -> type[AnyAxes]:
    # A decorator, so that type checkers see the class as written below.
    numeric: Mapping[str, Any] = {
        name: (describe_axis(parameter), None if parameter.free else ...)
        for name, parameter in PARAMETERS.items()
    }
    return create_model(
        form.__name__, __base__=form, __module__=form.__module__, __doc__=form.__doc__, **numeric
    )


@_add_numeric_axes
class Axes(Record):
    """The dimensions of the cube. `dataset` may be omitted if model files bring their own.

    Any other key names rows: parameters that change together.
    """

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, RowsAxis]

    model: References
    dataset: References | None = None
    system: References
    strategy: StrategyNames = TABLE_III

    @property
    def numeric(self) -> dict[str, Axis]:
        """The spec's numeric axes, in the order of PARAMETERS."""
        # One order for all cubes, whatever the order in the file.
        axes = {name: getattr(self, name) for name in PARAMETERS}
        return {name: axis for name, axis in axes.items() if isinstance(axis, Axis)}

    @property
    def rows(self) -> dict[str, Rows]:
        """The axes of parameters that change together, in alphabetical order."""
        return dict(sorted((self.__pydantic_extra__ or {}).items()))

    @property
    def swept(self) -> tuple[str, ...]:
        """The parameters with several values, on their own or in rows."""
        columns = (name for rows in self.rows.values() for name in rows.columns)
        return (*self.numeric, *self.ranges, *columns)

    @property
    def ranges(self) -> dict[str, Range]:
        """The axes with drawn values, in a space to sample; a grid has none."""
        axes = {name: getattr(self, name) for name in PARAMETERS}
        return {name: axis for name, axis in axes.items() if isinstance(axis, Range)}


def _write_parameters(parameters: dict[str, float]) -> dict[str, float | str]:
    return {name: PARAMETERS[name].write(value) for name, value in parameters.items()}


class Choices(Record):
    """The keys of a spec that choose formulas.

    oracle: Table III verbatim, or a detailed machine. scaling: whether `batch` is samples per
    replica (b) or per global batch (B). times: measured compute times where a model has them for
    the device, or the roofline for all. collectives: the algorithm of all-reduce and all-gather
    (auto: the machine's fastest by message size, Table III's ring; best, in Table III only: the
    cheaper of ring and tree). allreduce: in Table III only, of gradients whose weights a group
    replicates; one ring of p, or inside groups first. conventions: in Table III only, sums, halos
    and bounds as printed, or the layers that the authors' tool and experiments split and count
    (docs/oracle.md). iterations: I = D/B per epoch, or rounded up, as by loaders that keep a
    smaller last batch. optimizer: its update takes time, and its states memory. recompute: whether
    layers run forward again in the backward pass, to keep less memory; not in Table III.

    The others are of networks with blocks.
    attention: whether a block keeps its scores in memory. context: how PEs that share a sequence
    exchange keys and values. loss: what it keeps of logits, all of them (whole: fp32 alone, as
    Megatron-LM; plain: as PyTorch), an eighth at a time, or none (auto: as the system's software
    does). states: what blocks keep in fewer bytes than the precision's recipe, weights in fp8
    (where products are narrow), the optimizer's moments in bf16, or both (narrow); or another
    optimizer's. offload: what hosts keep, the optimizer's states, which they update, or what blocks
    keep until the backward pass.
    """

    oracle: OracleName = "machine"
    scaling: Literal["weak", "strong"] = "weak"
    times: Literal["measured", "roofline"] = "measured"
    collectives: Literal["auto", "ring", "tree", "two-level", "best"] = "auto"
    allreduce: Literal["ring", "hierarchical"] = "ring"
    conventions: Literal["table", "authors"] = "table"
    iterations: Literal["exact", "ceil"] = "exact"
    optimizer: Optimizer = "sgd"
    recompute: Literal["none", "full"] = "none"
    attention: Attention = "fused"
    context: ContextExchange = "ring"
    loss: LossLogits = "auto"
    states: KeptStates = "usual"
    offload: Offload = "none"


# Why one oracle does not have a parameter of the other, and what to write instead.
REFUSED: dict[str, str] = {
    "gamma": "memory is counted tensor by tensor, without a reuse factor; leave it out, or write "
    "'oracle: paper'",
    "delta": "it follows from the precision: write 'system: \"NAME:precision=amp\"', or "
    "'oracle: paper'",
}

# Choices that an oracle does not have, and what to write instead.
REFUSED_CHOICES: dict[OracleName, tuple[tuple[str, str, str], ...]] = {
    "paper": (
        ("recompute", "full", "write 'oracle: machine'"),
        ("collectives", "two-level", "write 'allreduce: hierarchical', or 'oracle: machine'"),
    ),
    "machine": (
        ("collectives", "best", "write 'collectives: auto', or 'oracle: paper'"),
        ("allreduce", "hierarchical", "write 'collectives: two-level', or 'oracle: paper'"),
        ("conventions", "authors", "leave it out, or write 'oracle: paper'"),
    ),
}


def add_former_choices(definition: Mapping[str, object]) -> dict[str, object]:
    """Add to a store's definition what was implied before a choice existed."""
    # Definitions without oracle and calibration are from the time of Table III alone.
    written = {"oracle": "paper", "calibration": "none", **definition}
    return written if written["oracle"] == "machine" else {"conventions": "authors", **written}


# A base of its own: pydantic puts the fields of the last base first, and so name and axes.
class _Space(Record):
    """A design space: axes and fixed values.

    name: the store's. axes: dimensions of the cube. parameters: those alike in all cells, by name.
    """

    name: Name = "sweep"
    axes: Axes
    parameters: Annotated[
        dict[str, float],
        BeforeValidator(read_parameters, json_schema_input_type=dict[str, float | str]),
        # Stores write JSON; copies in Python keep numbers.
        PlainSerializer(_write_parameters, when_used="json"),
    ] = Field(default={})  # pydantic copies it for every spec

    @field_validator("parameters")
    @classmethod
    def _refuse_fixed_axes(cls, fixed: dict[str, float], info: ValidationInfo) -> dict[str, float]:
        axes = info.data.get("axes")  # None if the axes are invalid themselves
        both = sorted(set(fixed) & {*axes.numeric, *axes.ranges}) if axes else []
        if both:
            raise ValueError(f"{both[0]!r} is an axis too; keep one of the two")
        return fixed


class Spec(Choices, _Space):
    """A design space: axes, fixed values, choices of formulas, and outputs to keep.

    calibration: names or files (auto: the shipped one for each machine, precision and software, if
    any). convergence: epochs to a target by global batch (docs/convergence.md; auto: the
    catalogue's measured ones). placements: placed groups from an earlier search, to avoid a new one
    (docs/placement.md). outputs: quantities to keep; with none, only summaries are kept.
    """

    calibration: References = ("auto",)
    convergence: References = ("none",)
    target: Name | None = None
    placements: tuple[Placements, ...] = ()
    outputs: Annotated[Texts, AfterValidator(check_outputs)] = MAIN_OUTPUTS

    @field_validator("outputs")
    @classmethod
    def _check_outputs(cls, names: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        """Check that epochs, and the oracle, are such that these outputs exist."""
        trained = list_trained(names)
        if trained and info.data.get("convergence") == ("none",):
            raise ValueError(f"{trained[0]!r} needs epochs to a target; write 'convergence: auto'")
        # An earlier field, so it has been validated; None if it is invalid itself.
        oracle = info.data.get("oracle")
        percentiles = [name for name in names if name in INTERVALS]
        if percentiles and oracle == "paper":
            raise ValueError(f"{percentiles[0]!r} is not in Table III; write 'oracle: machine'")
        unknown = list_unknown(names, oracle) if oracle else []
        if unknown:
            name, parameter = unknown[0]
            raise ValueError(f"{name!r}: {parameter!r} is no parameter of 'oracle: {oracle}'")
        return names

    @model_validator(mode="after")
    def _check_oracle(self) -> Self:
        for name in (*self.parameters, *self.axes.numeric, *self.axes.ranges):
            owner = PARAMETERS[name].oracle
            if owner not in (None, self.oracle):
                reason = REFUSED.get(
                    name, f"write 'oracle: {owner}', which has it, or leave it out"
                )
                raise ValueError(f"{name!r} is no parameter of 'oracle: {self.oracle}'; {reason}")
        for name, listed in (("calibration", self.calibration), ("convergence", self.convergence)):
            # A keyword beside entries would contradict them; str, since a definition is a mapping.
            if {"auto", "none"} & set(map(str, listed)) and len(listed) > 1:
                raise ValueError(f"{name}: expected auto, none, or files, got several")
        if self.target is not None and self.convergence == ("none",):
            raise ValueError("target: not used without epochs; write 'convergence: auto'")
        for name, value, advice in REFUSED_CHOICES[self.oracle]:
            if getattr(self, name) == value:
                raise ValueError(
                    f"'{name}: {value}' is no choice of 'oracle: {self.oracle}'; {advice}"
                )
        return self

    @model_validator(mode="after")
    def _check_placement(self) -> Self:
        strategies = {name: parse_strategy(name) for name in self.axes.strategy}
        placements = [name for name, strategy in strategies.items() if strategy.placed]
        others = [name for name, strategy in strategies.items() if not strategy.in_table_iii]
        if others and self.oracle == "paper":
            raise ValueError(f"{others[0]!r} is no strategy of Table III; write 'oracle: machine'")
        if placements and self.recompute == "full":
            raise ValueError(f"{placements[0]!r} cannot recompute layers; write 'recompute: none'")
        return self


def read_spec(path: Path) -> tuple[Spec, Document]:
    """Read a spec file and the places of its keys; InputError: file, line and key."""
    document = load(path)
    refuse_config(document.data, "a spec", path)
    return validate_spec(document.data, document), document


def validate_spec(data: dict[str, object], source: Document | str) -> Spec:
    """Return the spec of plain data; InputError begins with `source`."""
    return validate(Spec, data, source)
