"""Design spaces: the catalogue, strategies, axes, and the grid that a spec makes of them.

Import from the modules: the catalogue alone needs no JAX, and starts in a fraction of its time.
"""

if __name__ == "grids":  # in a checkout's own folder; two copies of a module would not agree
    raise ImportError("paradl's modules are in one package: import paradl.grids")
