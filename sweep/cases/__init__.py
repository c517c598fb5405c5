"""Cases: what the kernels say of a row's one cell: its draws, what fits, its memory."""
