"""Answers: what those of several questions have in common."""
