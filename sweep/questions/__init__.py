"""Questions about one configuration, a design space, a cube or the catalogue: a file for each."""
