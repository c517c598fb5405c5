"""The ParaDL oracle as pure, differentiable JAX functions of arrays, in SI units.

Import from the modules, such as `paradl.kernels.oracle.answer`; `kernels.names` needs no JAX.
"""

if __name__ == "kernels":  # in a checkout's own folder; two copies of a module would not agree
    raise ImportError("paradl's modules are in one package: import paradl.kernels")
