"""Surrogates: networks trained on samples of an oracle, and their scores."""
