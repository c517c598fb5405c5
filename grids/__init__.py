"""Design spaces: the catalogue, strategies, axes, and the grid that a spec makes of them.

Import from the modules: the catalogue alone needs no JAX, and starts in a fraction of its time.
"""
