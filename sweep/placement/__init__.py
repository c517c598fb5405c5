"""Operators on devices: the placement whose step takes least, and a proof of how near it is."""
