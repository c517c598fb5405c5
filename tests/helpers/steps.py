"""Networks of a few steps."""

from paradl.grids.models.architecture import Architecture
from paradl.grids.models.layers import LayerTable

SEQUENCE = (6, 5)  # 5 positions of 6 features
IMAGE = (3, 4, 4)


def infer_table(*steps: object, shape: tuple[int, ...] = SEQUENCE, targets: int = 7) -> LayerTable:
    """Infer the layers of the steps for samples of a shape."""
    definition = {"name": "net", "rank": len(shape) - 1, "layers": list(steps)}
    return Architecture.from_definition(definition).layers_for(shape, targets)


def list_column(table: LayerTable, column: str) -> list[int]:
    """List a column of the table by layer."""
    return [int(value) for value in getattr(table, column)]
