"""Networks from other tools: PyTorch modules, JAX functions, ONNX files, checkpoints."""
