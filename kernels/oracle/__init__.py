"""The oracle: work of layers, an iteration in closed form, limits, uncertainty, the answer."""
