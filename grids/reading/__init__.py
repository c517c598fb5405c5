"""Reading: the user's files and quantities, and what is wrong with them."""
