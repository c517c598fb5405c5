"""The machine: levels of links, rings of PEs on them, collectives, software."""
