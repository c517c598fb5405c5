"""Entries that a design space names: parameters, data sets, machines, strategies, calibrations."""
