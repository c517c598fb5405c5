"""Table III of ParaDL (HPDC 2021) verbatim, frozen: p1 replicas of groups of p2 PEs.

It reproduces the authors' published predictions, and teaches. It shares no formula with the machine
oracle, and imports only `kernels.arrays`, `kernels.options` and the names of terms.
"""
