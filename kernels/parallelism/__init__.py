"""Parallelisms: a file for each way of dividing a network among the PEs of a group.

`parallelism.py` says what one is; `layout.py` lists them. Data parallelism divides samples and not
the network: what its replicas send each other is in `kernels.oracle.exchanges`.

To add one: a file NAME.py here with `PARALLELISM` (a PE's share of each layer, what it holds, the
exchanges of a step, what may hide them), and a row of `KINDS` in `kernels.names.parallelisms`;
strategies, settings, axes of its degree and products follow. If it divides layers in a new way:
`Divided` there, and `place` of `grids.inputs.placement`. Its colour: `sweep.plots.looks`; formulas
of its own: `sweep.explanation.formulas`. Once more, independently, in tests/helpers/:
reference_machine.py, reference_products.py. Tests: tests/test_machine_agreement.py,
tests/test_products.py. (Degrees of transformers: `kernels.parallelism.dimension`.)
"""
