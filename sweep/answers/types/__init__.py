"""Types of answers: the fields of each, with units and meanings."""
