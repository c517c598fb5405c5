"""Exports: a cube's cells as files that others read without paradl."""
