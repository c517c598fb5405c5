"""Names of flags, terms, outputs and statistics, without JAX."""
