"""Place: the operators of a graph on devices, with the least time of a step."""
