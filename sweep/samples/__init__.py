"""Samples: rows drawn over a design space, with features, labels, slopes and splits."""
