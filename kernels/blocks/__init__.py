"""Blocks: what the engine fills tile by tile, with the fit and the summary of each."""
