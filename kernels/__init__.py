"""The ParaDL oracle as pure, differentiable JAX functions of arrays, in SI units.

Import from the modules: `kernels.oracle` answers, and `kernels.flags`, the names of its limits, is
read without JAX.
"""
