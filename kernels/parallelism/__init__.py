"""Parallelisms: a file for each way of dividing a network among the PEs of a group.

`parallelism.py` says what one is; `layout.py` lists them. Layers and blocks of attention have their
own methods: a pipeline has both; filter, channel, spatial and placement divide layers; tensor,
context, expert and data blocks. What replicas of layers send each other is in
`kernels.oracle.iteration`.

To add one of layers: a file NAME.py here with `PARALLELISM` (a PE's share of each layer, what it
holds, the exchanges of a step, what may hide them), and a row of `KINDS` in
`kernels.names.parallelisms`; strategies, settings, axes of its degree and products follow. If it
divides layers in a new way: `Divided` there, and `place` of `grids.inputs.placement`. Its colour:
`sweep.plots.looks`; formulas of its own: `sweep.explanation.formulas`. Once more, independently, in
tests/helpers/: reference_machine.py, reference_products.py. Tests: tests/test_machine_agreement.py,
tests/test_products.py.

To add a degree of blocks: a file with `PARALLELISM`, its row of `_COLUMNS` in
`kernels.names.parallelisms`, and its column in `Layouts` (`kernels.work.layouts`); a setting: the
last two. A rule: a row of `list_rules`. How tensor
parallelism divides a layer, and what recomputes it: `Role` of `grids.models.tensors`, in the
layer's step. Formulas: docs/transformers.md. Tests: tests/test_layouts.py (it equals the scalar
reference), tests/grids/test_transformers.py.
"""
