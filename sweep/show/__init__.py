"""Answers as people see them: tables, explanations, pictures."""
