"""Blocks of a cube, filled tile by tile, with their limits and summaries."""
