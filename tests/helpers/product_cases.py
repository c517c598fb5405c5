"""Random products of parallelisms, as users write them."""

from dataclasses import dataclass
from typing import Any, Literal

from hypothesis import strategies as st

BYTES = ("bucket", "reserved")  # as users write them, with their unit


@dataclass(frozen=True)
class Degrees:
    """Degree of each parallelism; 0: not in the layout. kind: what is divided into parts."""

    replicas: int = 0
    spatial: int = 0
    parts: int = 0
    pipeline: int = 0
    kind: Literal["filter", "channel"] = "filter"

    @property
    def inside(self) -> dict[str, int]:
        """Degrees by name, in the order in which users write them."""
        every = {"spatial": self.spatial, self.kind: self.parts, "pipeline": self.pipeline}
        return {name: degree for name, degree in every.items() if degree}

    @property
    def p(self) -> int:
        """Number of all PEs."""
        product = max(1, self.replicas)
        for degree in self.inside.values():
            product *= degree
        return product

    def write(self, dims: str, segments: int, zero: int = 0, schedule: str = "gpipe") -> str:
        """Write the layout as users do; without replicas one degree follows from the others."""
        names, settings = [*self.inside], dict[str, object](self.inside)
        if len(names) == 1:
            settings = {"group": self.inside[names[0]]} if self.replicas else {}
        elif not self.replicas:
            settings.popitem()
        if "pipeline" in names:
            settings |= {"segments": segments, "schedule": schedule}
        if "spatial" in names:
            settings["split"] = dims
        if self.replicas:
            settings["zero"] = zero
        base = "+".join((["data"] if self.replicas else []) + names)
        written = ",".join(f"{name}={value}" for name, value in settings.items())
        return f"{base or 'serial'}:{written}" if written else base or "serial"


@dataclass(frozen=True)
class Case:
    """Arguments of `paradl.predict`, and what the reference needs of them."""

    model: dict[str, Any]
    dataset: dict[str, Any]
    system: dict[str, Any]
    parameters: dict[str, float]
    settings: dict[str, Any]
    degrees: Degrees
    dims: str
    segments: int
    batch: int
    zero: int = 0
    schedule: Literal["gpipe", "1f1b", "zb1p"] = "gpipe"

    @property
    def strategy(self) -> str:
        return self.degrees.write(self.dims, self.segments, self.zero, self.schedule)

    @property
    def asked(self) -> dict[str, Any]:
        """The arguments of `paradl.predict`."""
        return {
            "model": self.model,
            "strategy": self.strategy,
            "pe": self.degrees.p,
            "batch": self.batch,
            "system": self.system,
            "dataset": self.dataset,
            "parameters": {
                name: f"{value!r} B" if name in BYTES else value
                for name, value in self.parameters.items()
            },
            "settings": self.settings,
        }


# What is drawn.

# Of each parameter of the machine oracle that such a network feels.
RANGES: dict[str, st.SearchStrategy[float]] = {
    **{f"efficiency_{kind}": st.floats(0.05, 1) for kind in ("conv2d", "conv3d", "matmul")},
    "half_channels": st.floats(0, 64),
    "tile_filters": st.sampled_from((1, 3, 64)),
    "kernel_overlap": st.floats(0, 1),
    "window_fetch": st.floats(0.01, 2),
    "layout_passes": st.floats(0, 8),
    "winograd": st.floats(1, 4),
    "elementwise_passes": st.floats(1, 8),
    "layer_overhead": st.floats(0, 1e-4),
    "reserved": st.sampled_from((0.0, 1e6)),
    "accumulate": st.integers(1, 3).map(float),
    "input_rate": st.sampled_from((1e2, 1e5, 1e9)),
    "phi": st.floats(1, 4),
    "bucket": st.sampled_from((1e2, 1e4, 1e9)),
    "overlap": st.floats(0, 1),
    "jitter": st.floats(0, 0.2),
    "phi_halo": st.floats(1, 8),
    "phi_gather": st.floats(1, 8),
    **{name: st.floats(0.05, 1) for name in ("rail", "flow", "packing", "assembly")},
    **{name: st.floats(0.5, 2) for name in ("node_reduce", "node_collective")},
    **{name: st.floats(0.5, 4) for name in ("startup", "halo_startup")},
    "large_message": st.floats(1e-3, 1),
    "gather_rate": st.floats(1e-3, 1),
    "log_open": st.floats(0, 1e-4),
    "part_overhead": st.floats(0, 1e-4),
    "host_jitter": st.floats(0, 1),
}


ENDS: st.SearchStrategy[list[Any]] = st.sampled_from(
    ([], ["relu", {"fc": "targets"}], [{"fc": 40}, {"fc": "targets"}])
)


@st.composite
def models(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    """Draw a network with windows of many sizes and a shortcut, and samples for it."""
    rank = draw(st.sampled_from((2, 2, 3)))
    widths = st.sampled_from((8, 12, 16, 32))
    wide = draw(widths)
    body = [
        {"conv": {"filters": draw(widths), "kernel": 1}},
        "relu",
        {
            "conv": {
                "filters": wide,
                "kernel": 3,
                "padding": 1,
                "groups": draw(st.sampled_from((1, 4))),
            }
        },
    ]
    steps = [
        {"conv": {"filters": wide, "kernel": draw(st.sampled_from((3, 5))), "padding": 2}},
        draw(st.sampled_from(("batchnorm", "relu"))),
        {"residual": body},
        {"maxpool": {"kernel": draw(st.sampled_from((2, 3))), "stride": 2}},
        {
            "conv": {
                "filters": draw(widths),
                "kernel": 3,
                "padding": 1,
                "stride": draw(st.sampled_from((1, 2))),
            }
        },
        *draw(ENDS),
    ]
    extents = [draw(st.sampled_from((12, 14, 16)))] * rank
    samples = {
        "name": "few",
        "shape": [3, *extents],
        "targets": 10,
        "samples": draw(st.sampled_from((3, 1000))),
    }
    return {"name": "toy", "rank": rank, "layers": steps}, samples


line = st.fixed_dictionaries(
    {
        "latency": st.floats(1e-7, 1e-4).map("{!r} s".format),
        "bandwidth": st.floats(1e9, 1e11).map("{!r} B/s".format),
    }
)
# Of one level; lines of several levels would have to be told apart.
collectives = st.fixed_dictionaries(
    {},
    optional={
        name: st.lists(line, min_size=1, max_size=1) for name in ("all_reduce", "all_gather")
    },
)


@st.composite
def systems(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a machine of one to three levels, with or without staging through hosts."""
    node = draw(st.sampled_from((4, 2, 8, 1)))
    spans = [node, node * 3, node * 96][: draw(st.sampled_from((3, 2, 1)))]
    levels = [
        {
            "name": f"of {span}",
            "pes": span,
            "latency": f"{draw(st.floats(1e-7, 1e-4))!r} s",
            "bandwidth": f"{draw(st.floats(1e9, 1e11))!r} B/s",
            "oversubscription": draw(st.sampled_from((1.0, 3.0))),
        }
        for n, span in enumerate(spans)
    ]
    if draw(st.booleans()):
        for level in levels:
            level["collectives"] = draw(collectives)
    if draw(st.booleans()):  # its node's switches sum
        levels[0]["switch_latency"] = f"{draw(st.floats(1e-7, 1e-4))!r} s"
    if draw(st.booleans()):  # its node's PEs share one path
        levels[0]["shared"] = f"{draw(st.floats(1e9, 1e12))!r} B/s"
    staging = {"latency": f"{draw(st.floats(1e-7, 1e-3))!r} s", "bandwidth": "8 GB/s"}
    return {
        "name": "random",
        "pe": {
            "name": "PE",
            "device": "none",
            "peak_flops": f"{draw(st.floats(1e12, 1e14))!r} FLOP/s",
            "tensor_peaks": {
                name: f"{draw(st.floats(1e12, 1e14))!r} FLOP/s" for name in ("amp", "tf32", "bf16")
            },
            "efficiency": 0.5,
            "memory_capacity": f"{draw(st.sampled_from((1e8, 2e6)))!r} B",
            "memory_bandwidth": f"{draw(st.floats(1e10, 1e12))!r} B/s",
        },
        "precision": draw(st.sampled_from(("fp32", "amp", "tf32", "bf16"))),
        "software": draw(st.sampled_from(("plain", "ddp"))),
        "pes_per_node": node,
        "links_per_node": draw(st.integers(1, 4)),
        "levels": levels,
        **draw(st.sampled_from(({}, {"staging": staging}))),
    }


SETTINGS = st.fixed_dictionaries(
    {
        "calibration": st.just("none"),
        "optimizer": st.sampled_from(("none", "sgd", "adam")),
        "recompute": st.sampled_from(("none", "full")),
        "collectives": st.sampled_from(("auto", "auto", "ring", "tree", "two-level")),
        "iterations": st.sampled_from(("exact", "ceil")),
    }
)


@st.composite
def cases(draw: st.DrawFn, degrees: st.SearchStrategy[Degrees]) -> Case:
    """Draw a question about a layout of these degrees."""
    model, dataset = draw(models())
    dims = draw(st.sampled_from(("h", "w", "hw")))
    return Case(
        model=model,
        dataset=dataset,
        system=draw(systems()),
        parameters=draw(st.fixed_dictionaries(RANGES)),
        settings=draw(SETTINGS),
        degrees=draw(degrees),
        dims=dims,
        segments=draw(st.sampled_from((4, 1, 2, 3, 8))),
        batch=draw(st.integers(1, 64)),
        zero=draw(st.sampled_from((0, 0, 1, 2, 3))),
        schedule=draw(st.sampled_from(("gpipe", "1f1b", "zb1p"))),
    )
