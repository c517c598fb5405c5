"""Names: flags, terms, outputs and statistics, for whoever reads them without JAX."""
