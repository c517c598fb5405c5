"""Pictures of answers; they need matplotlib, the extra `plot`."""
