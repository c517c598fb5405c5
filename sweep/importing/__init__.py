"""Importing: machines, networks and runs from the files that other tools write.

To add a log of machines: a reader in sweep/importing/machines/ that yields measurements, its name
in `READERS` and what shows its kind in `_find_kind` (read.py); test:
tests/sweep/importing/test_import_machine.py. A source of networks: a reader in
sweep/importing/networks/ that calls `TracedGraph` (graph.py) operator by operator, chosen in
`import_network` (source.py); test: tests/sweep/importing/test_networks.py. An operator of PyTorch:
a method `take_NAME` of torch_operators.py. A log of training runs: `sweep.measured.log_formats`.
"""
