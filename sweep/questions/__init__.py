"""Questions: what a user asks of one configuration, of the catalogue, or of a stored cube."""
