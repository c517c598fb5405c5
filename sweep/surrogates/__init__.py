"""Surrogates: learners that are trained on samples, and how far they can be trusted."""
