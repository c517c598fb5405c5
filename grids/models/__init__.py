"""Networks: architectures and their steps, shape inference, the authors' files."""
