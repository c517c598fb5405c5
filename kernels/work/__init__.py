"""Layers, and the share of them that one PE of a group computes and holds."""
