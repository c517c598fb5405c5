"""Machines from logs of benchmarks, from topologies, and from this device."""
