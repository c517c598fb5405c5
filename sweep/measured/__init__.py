"""Measured runs, and how far predictions are from them."""
