"""Placing operators on devices: what is found, and how."""
