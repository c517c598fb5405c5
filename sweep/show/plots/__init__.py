"""Pictures of what paradl found; they need matplotlib, the extra `plot`."""
