"""Graphs of operators: what a training step computes, and the tensors between operators."""
