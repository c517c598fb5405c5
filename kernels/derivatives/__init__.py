"""Elasticities of answers in parameters, and how likely a machine's parameters are."""
