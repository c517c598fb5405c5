"""Placement of operators on devices: schedules, a search, and a proof by integer programming."""
