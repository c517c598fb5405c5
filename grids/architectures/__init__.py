"""The words architectures are written in, and one file a family of them."""
