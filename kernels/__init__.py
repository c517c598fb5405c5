"""The ParaDL oracle as pure, differentiable JAX functions of arrays, in SI units.

Import from the modules, such as `kernels.oracle.answer`; `kernels.names` needs no JAX.
"""
