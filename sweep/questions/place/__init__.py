"""Place the operators of a graph on devices, for the least time per step."""
