"""Cases: what questions ask the kernels about one cell, or about cells along an axis."""
