"""Elasticities of answers in parameters."""
