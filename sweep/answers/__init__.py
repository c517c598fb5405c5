"""Answers: types whose fields have units and meanings, and what several questions share."""
