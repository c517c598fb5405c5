"""Cells that a question covers, read from a store or a Dataset, or computed in memory."""
