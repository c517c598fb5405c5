"""Graphs of operators: what one step of training computes, and what flows between its parts."""
