"""Symbols, formulas, layers and launch of one configuration."""
