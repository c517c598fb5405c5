"""Work: the layers, and what of them one PE of a group computes and holds."""
