"""Surrogates: learners trained on samples of an oracle, and their scores."""
