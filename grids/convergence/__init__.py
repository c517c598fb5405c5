"""Statistical efficiency: epochs to a target accuracy by global batch, measured and fitted."""
