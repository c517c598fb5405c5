"""Importing: machines, networks and runs from the files that other tools write."""
