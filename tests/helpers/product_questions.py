"""Questions about products of parallelisms, for the scalar reference."""

import math
from typing import Any

import reference
from cases import list_extents
from product_cases import Case
from reference import Triple
from reference_parts import Layer, Machine, Run
from reference_products_parts import Product, cut_product, fits_rows

from paradl.grids.models.architecture import Architecture
from paradl.grids.models.kinds import KINDS
from paradl.grids.models.layers import LayerTable

ITEMS = {"fp32": 4.0, "tf32": 4.0, "amp": 2.0, "bf16": 2.0}  # bytes; a gradient's are as many


def make_table(case: Case) -> LayerTable:
    """Return the layers of a case's network."""
    shape = tuple(case.dataset["shape"])
    return Architecture.from_definition(case.model).layers_for(shape, case.dataset["targets"])


def make_rows(table: LayerTable) -> list[Layer]:
    """Convert the layers for the reference."""
    return [make_row(table, n, inputs=table.inputs[n]) for n in range(len(table))]


def make_row(table: LayerTable, n: int, **others: Any) -> Layer:
    """Convert a layer, with what the question adds to it."""
    deep = bool((table.extents_x[:, 0] > 1).any())
    return Layer(
        x=table.x[n],
        y=table.y[n],
        w=table.w[n],
        bias=table.bias[n],
        flops=table.flops[n],
        kind=name_kind(table.kinds[n], deep),
        kept_items=table.kept_items[n],
        kept_bytes=table.kept_bytes[n],
        extents_x=list_extents(table.extents_x[n]),
        extents_y=list_extents(table.extents_y[n]),
        kernel=list_extents(table.kernel[n]),
        stride=tuple(table.stride[n].tolist()),
        groups=table.groups[n],
        channels=table.channels[n],
        filters=table.filters[n],
        **others,
    )


def name_kind(kind: str, deep: bool) -> Any:
    if KINDS[kind].convolves:
        return "conv3d" if deep else "conv2d"
    return "matmul" if KINDS[kind].multiplies else "other"


def read_number(text: str) -> float:
    """Return a quantity in SI units."""
    number, unit = text.split()
    return float(number) * (1e9 if unit.startswith("G") else 1)


def list_levels(system: dict[str, Any], collective: str = "") -> list[tuple[float, ...]]:
    """List the levels, as a collective was measured on some of them."""
    measured = [level.get("collectives", {}).get(collective) for level in system["levels"]]
    return [
        (
            level["pes"],
            *(read_number((line or [level])[0][name]) for name in ("latency", "bandwidth")),
            level["oversubscription"],
        )
        for level, line in zip(system["levels"], measured, strict=True)
    ]


def make_machine(case: Case) -> Machine:
    """Convert the system with all parameters; none has its prior."""
    system, pe = case.system, case.system["pe"]
    item = ITEMS[system["precision"]]
    known: dict[str, Any] = dict(case.parameters)
    del known["phi"], known["accumulate"]
    kinds = ("conv2d", "conv3d", "matmul")
    efficiencies = {kind: known.pop(f"efficiency_{kind}") for kind in kinds}
    staging = system.get("staging")
    hosts = [read_number(staging[name]) for name in ("latency", "bandwidth")] if staging else []
    startup = system["levels"][0].get("switch_latency")
    shared = system["levels"][0].get("shared")
    peak = pe["tensor_peaks"].get(system["precision"], pe["peak_flops"])
    return Machine(
        peak=read_number(peak),
        memory_bandwidth=read_number(pe["memory_bandwidth"]),
        memory_capacity=read_number(pe["memory_capacity"]),
        pes_per_node=system["pes_per_node"],
        links_per_node=system["links_per_node"],
        levels=list_levels(system),
        measured={
            name: [list_levels(system, name)]
            for name in ("all_reduce", "all_gather")
            if any(name in level.get("collectives", {}) for level in system["levels"])
        },
        switch_latency=read_number(startup) if startup else None,
        shared=read_number(shared) if shared else math.inf,
        a=item,
        g=item,
        efficiencies=efficiencies,
        staging=(hosts[0], hosts[1]) if hosts else None,
        size=system["levels"][-1]["pes"],
        **known,
    )


def find_factors(table: LayerTable, case: Case) -> Triple:
    """Return the factors of the authors' groups."""
    rows = [
        reference.Layer(
            name=table.names[n],
            kind=table.kinds[n],
            **{
                name: getattr(table, name)[n]
                for name in ("x", "y", "w", "bias", "flops", "channels", "filters", "groups")
            },
            extents_x=list_extents(table.extents_x[n]),
            extents_y=list_extents(table.extents_y[n]),
            kernel=list_extents(table.kernel[n]),
            stride=tuple(table.stride[n].tolist()),
        )
        for n in range(len(table))
    ]
    setup = reference.Setup("spatial", 1, 1, samples=1, dims=case.dims, conventions="authors")
    factors = reference.spatial_factors(rows, setup, max(1, case.degrees.spatial))
    assert factors is not None
    return factors


def make_product(case: Case) -> Product:
    """Make the layout, with stages."""
    table, degrees = make_table(case), case.degrees
    rows, factors = make_rows(table), find_factors(table, case)
    windowed = [KINDS[kind].windowed for kind in table.kinds]
    in_space = [one and fits_rows(row, factors) for one, row in zip(windowed, rows, strict=True)]
    convolutions = [n for n, kind in enumerate(table.kinds) if KINDS[kind].convolves]
    divided = convolutions if degrees.kind == "filter" else convolutions[1:]
    settings, collectives = case.settings, case.settings["collectives"]
    alone = case.system["software"] == "plain" and collectives == "auto"
    # With measured lines a ring is the one of most bandwidth: here there is one at each level.
    alone = alone and not make_machine(case).measured.get("all_reduce")
    run = Run(
        group="pipeline",
        p1=max(1, degrees.replicas),
        p2=max(1, degrees.pipeline),
        segments=case.segments,
        b=float(case.batch),
        accumulate=int(case.parameters["accumulate"]),
        samples=case.dataset["samples"],
        optimizer=settings["optimizer"],
        recompute=settings["recompute"] == "full",
        iterations=settings["iterations"],
        algorithm=collectives,
        gradients="ring" if alone else None,
        phi=case.parameters["phi"],
        zero=case.zero if degrees.replicas else 0,
        schedule=case.schedule if degrees.pipeline else "gpipe",
        alike=max(1, degrees.spatial),
    )
    product = Product(
        run=run,
        in_space=tuple(in_space),
        in_parts=tuple(n in divided for n in range(len(rows))),
        factors=factors,
        kind=degrees.kind,
        parts=max(1, degrees.parts),
    )
    return cut_product(rows, make_machine(case), product)
