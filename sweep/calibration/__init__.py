"""Calibration of a machine: its parameters from measured runs, and how sure they are."""
