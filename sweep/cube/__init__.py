"""The cube: its plan, its store, and what is written beside the answers."""
