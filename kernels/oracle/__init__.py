"""The machine oracle: layers reduced once, an iteration in closed form, limits, the answer."""
