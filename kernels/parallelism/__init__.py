"""Parallelisms: a file for each way of dividing a network among the PEs of a group.

`parallelism.py` says what one is; `layout.py` lists them. Data parallelism divides samples and not
the network: what its replicas send each other is in `kernels.oracle.exchanges`.
"""
