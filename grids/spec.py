"""A spec: the user's description of a design space, validated.

What it names (models, systems ...) is looked up when the grid is made; here its form is checked,
its units are read and its axes are expanded.
"""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from grids.axes import Axis, AxisOf
from grids.entries.entry import Name
from grids.entries.parameters import PARAMETERS
from grids.entries.strategies import MEANING, parse
from grids.reading.errors import nearest, shorten
from grids.reading.yamlfile import Document, explain, load

TERMS = (
    "forward_backward",
    "pipeline_bubble",
    "weight_update",
    "split_overhead",
    "gradient_exchange",
    "layer_collectives",
    "halo_exchange",
    "split_gather",
    "point_to_point",
)
# Percentiles of an epoch's times, which only a calibrated oracle knows.
TIMES = ("comp_time", "comm_time", "epoch_time")
INTERVALS = {f"{time}_p{percent}": (time, percent) for time in TIMES for percent in (10, 50, 90)}
MAIN_OUTPUTS = ("comp_time", "comm_time", "memory", "limit")
OUTPUTS = (*MAIN_OUTPUTS, *TERMS, "replicas", "group_size")


def _listed(value: object) -> object:
    return value if isinstance(value, list | tuple) else [value]


def _some(value: object) -> object:
    if value in ([], ()):
        raise ValueError("expected at least one entry, got an empty list")
    return _listed(value)


def _named_or_defined(value: object) -> object:
    if not isinstance(value, str | dict):
        raise ValueError(f"expected a name, a file or a definition, got {shorten(value)}")
    return value


def _strategy(text: str) -> str:
    parse(text)
    return text


# A name of the catalogue, a file, or a definition written out in the spec.
Reference = Annotated[str | dict[str, object], BeforeValidator(_named_or_defined)]
StrategyName = Annotated[str, AfterValidator(_strategy)]
# Each has to be the only one of its name, and comparing thousands takes long.
Some = Field(min_length=1, max_length=1000)
ListedReferences = Annotated[tuple[Reference, ...], Some]
ListedNames = Annotated[tuple[StrategyName, ...], Some]
References = Annotated[
    ListedReferences,
    BeforeValidator(_some, json_schema_input_type=Reference | ListedReferences),
]
StrategyNames = Annotated[
    ListedNames, BeforeValidator(_some, json_schema_input_type=StrategyName | ListedNames)
]


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Axes(_Form):
    """The dimensions of the cube. `dataset` may be left out where model files bring their own."""

    model: References
    dataset: References | None = None
    system: References
    strategy: StrategyNames = tuple(MEANING)
    pe: Annotated[Axis, AxisOf("pe")]
    batch: Annotated[Axis, AxisOf("batch")]
    intra_bandwidth: Annotated[Axis | None, AxisOf("intra_bandwidth")] = None
    inter_bandwidth: Annotated[Axis | None, AxisOf("inter_bandwidth")] = None
    intra_latency: Annotated[Axis | None, AxisOf("intra_latency")] = None
    inter_latency: Annotated[Axis | None, AxisOf("inter_latency")] = None
    staging_bandwidth: Annotated[Axis | None, AxisOf("staging_bandwidth")] = None
    staging_latency: Annotated[Axis | None, AxisOf("staging_latency")] = None
    peak_flops: Annotated[Axis | None, AxisOf("peak_flops")] = None
    efficiency: Annotated[Axis | None, AxisOf("efficiency")] = None
    memory_bandwidth: Annotated[Axis | None, AxisOf("memory_bandwidth")] = None
    memory_capacity: Annotated[Axis | None, AxisOf("memory_capacity")] = None
    delta: Annotated[Axis | None, AxisOf("delta")] = None
    gamma: Annotated[Axis | None, AxisOf("gamma")] = None
    phi: Annotated[Axis | None, AxisOf("phi")] = None
    phi_halo: Annotated[Axis | None, AxisOf("phi_halo")] = None
    phi_gather: Annotated[Axis | None, AxisOf("phi_gather")] = None
    segments: Annotated[Axis | None, AxisOf("segments")] = None
    group: Annotated[Axis | None, AxisOf("group")] = None

    @property
    def numeric(self) -> dict[str, Axis]:
        """The numeric axes that the spec has: pe and batch first, whatever the spec's order."""
        written = {name: getattr(self, name) for name in self.model_fields_set}
        order = ["pe", "batch", *(name for name in PARAMETERS if name not in ("pe", "batch"))]
        return {name: written[name] for name in order if isinstance(written.get(name), Axis)}


def _parameters(value: object) -> object:
    """Fixed parameters in SI units."""
    if not isinstance(value, dict):
        raise ValueError(f"expected 'name: value' lines, got {shorten(value)}")
    known = set(PARAMETERS) - {"pe", "batch"}
    for name in value:
        if name in ("pe", "batch"):
            raise ValueError(f"{name!r} is always an axis; write it under 'axes'")
        if name not in known:
            raise ValueError(f"unknown parameter {shorten(name)}; {nearest(str(name), known)}")
    return {name: PARAMETERS[name].read(each, name) for name, each in value.items()}


def _written(parameters: dict[str, float]) -> dict[str, float | str]:
    """Fixed parameters as `_parameters` reads them."""
    return {name: PARAMETERS[name].write(value) for name, value in parameters.items()}


def _outputs(names: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        if name not in (*OUTPUTS, *INTERVALS):
            raise ValueError(
                f"unknown output {shorten(name)}; {nearest(name, (*OUTPUTS, *INTERVALS))}"
            )
    if len(set(names)) != len(names):
        raise ValueError(f"expected each output once, got {shorten(list(names))}")
    return names


class Spec(_Form):
    """A design space: axes, what is fixed, which formulas, and what to keep of the answers.

    Without any `outputs`, only the summaries are kept.
    """

    name: Name = "sweep"
    scaling: Literal["weak", "strong"] = "weak"
    axes: Axes
    parameters: Annotated[
        dict[str, float],
        BeforeValidator(_parameters, json_schema_input_type=dict[str, float | str]),
        PlainSerializer(_written, when_used="json"),
    ] = {}
    times: Literal["measured", "roofline"] = "measured"
    collectives: Literal["ring", "tree", "best"] = "ring"
    allreduce: Literal["ring", "hierarchical"] = "ring"
    iterations: Literal["exact", "ceil"] = "exact"
    optimizer: Literal["sgd", "adam", "none"] = "sgd"
    calibration: Reference = "none"
    outputs: Annotated[
        tuple[str, ...],
        BeforeValidator(_listed, json_schema_input_type=str | tuple[str, ...]),
        AfterValidator(_outputs),
    ] = MAIN_OUTPUTS

    @field_validator("outputs")
    @classmethod
    def _intervals_need_runs(cls, names: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        asked = [name for name in names if name in INTERVALS]
        if asked and info.data.get("calibration") == "none":
            raise ValueError(f"{asked[0]!r} needs a calibration; write 'calibration: abci', or so")
        return names

    @field_validator("parameters")
    @classmethod
    def _fixed_or_axis(cls, fixed: dict[str, float], info: ValidationInfo) -> dict[str, float]:
        axes = info.data.get("axes")  # None where the axes have mistakes of their own
        both = sorted(set(fixed) & set(axes.numeric)) if axes else []
        if both:
            raise ValueError(f"{both[0]!r} is an axis too; keep one of the two")
        return fixed


def read_spec(path: Path) -> tuple[Spec, Document]:
    """Read and validate a spec file; InputError points at file, line and key."""
    document = load(path)
    return validated(document.data, document), document


def validated(data: dict[str, object], source: Document | str) -> Spec:
    """Validate a spec from plain data."""
    try:
        return Spec.model_validate(data)
    except ValidationError as error:
        raise explain(error, source, Spec) from None
