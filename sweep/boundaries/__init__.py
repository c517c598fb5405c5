"""Where configurations stop or change places: limits, memory, the nearest that fits, crossings."""
