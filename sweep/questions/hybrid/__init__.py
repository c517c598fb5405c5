"""Hybrid or data parallelism: which reaches the target accuracy first, and at which PE counts.

Pal et al., "Optimizing Multi-GPU Parallelization Strategies for Deep Learning Training", IEEE Micro
2019, arXiv 1907.13257. Symbols: N replicas of M PEs each, P = M N PEs; b samples a replica,
B = b N; T(P) seconds per iteration, T_1 on one PE; E(B) epochs to the target accuracy.

    SU = SU^M x SE x N x E(b) / E(B)        SU^M = T_1 / T(M)        SE = T(M) / T(P)

SU is the speed-up of the whole training over one PE, SU^M that of an iteration in one group, SE the
scaling efficiency across replicas. Data parallelism has M = 1 and SU^M = 1.
"""
