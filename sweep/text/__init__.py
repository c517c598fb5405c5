"""Answers as people and programs read them: sentences, tables, records, JSON and CSV."""
