"""What pictures show, as plain arrays: a file for each, without matplotlib."""
