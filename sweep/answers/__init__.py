"""Types of answers, whose fields carry units and meanings, and helpers that questions share."""
