"""Derivatives: elasticities of answers in parameters."""
