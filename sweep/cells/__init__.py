"""Cells: what a question is about, and its cells, wherever they are."""
