"""Answers: what each verb answers, as types whose fields have units and meanings."""
