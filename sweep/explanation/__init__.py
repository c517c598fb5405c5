"""Explanation: the symbols, formulas, layers and launch of one configuration."""
