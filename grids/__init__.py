"""What is swept: the catalogue, strategies, axes, and the grid that a spec makes of them."""

from grids.errors import InputError, ShapeError, nearest
from grids.grid import LABELS, Grid, Index
from grids.layers import Floats, LayerTable
from grids.problem import Problem, Settings, Workload, build
from grids.spec import OUTPUTS, TERMS, Spec, read_spec, validated
from grids.strategies import Strategy

__all__ = [
    "LABELS",
    "OUTPUTS",
    "TERMS",
    "Floats",
    "Grid",
    "Index",
    "InputError",
    "LayerTable",
    "Problem",
    "Settings",
    "ShapeError",
    "Spec",
    "Strategy",
    "Workload",
    "build",
    "nearest",
    "read_spec",
    "validated",
]
