"""Layouts of transformers: candidates as columns, what forbids each, and their memory by part.

In numpy: a question asks this of many candidates once, and nothing is compiled.
"""
