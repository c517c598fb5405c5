"""One configuration of a grid: its case for the kernels, degrees, layout and rates."""
