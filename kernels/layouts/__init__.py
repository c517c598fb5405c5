"""Layouts of transformers: candidates as columns, what forbids each, memory, time, and a search.

In numpy: a question asks this of many candidates once, and nothing is compiled.
"""
