"""Measurements of paradl's speed and accuracy: `python -m benchmarks`.

Rates of a small or shared machine are noise; ratios of measurements taken in turn are not.
"""
