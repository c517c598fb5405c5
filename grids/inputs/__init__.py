"""Inputs: what turns a design space into the kernels' arguments."""
