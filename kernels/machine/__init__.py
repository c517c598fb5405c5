"""Machine: levels of links, rings on them, collectives, software, draws of their values."""
