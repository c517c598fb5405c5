"""The ParaDL oracle as pure, differentiable JAX functions of arrays, in SI units.

Import from the modules: `kernels.oracle.answer` answers; `kernels.names` is read without JAX.
"""
