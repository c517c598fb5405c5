"""Networks from other tools: PyTorch modules, ONNX files, checkpoints."""
