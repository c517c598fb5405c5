"""A small convolutional network, of weights that are shapes alone."""

from pathlib import Path

import jax

import paradl


def network(weights, x):
    """Compute scores of 1,000 classes for images, channels last."""
    layout = ("NHWC", "HWIO", "NHWC")
    x = jax.lax.conv_general_dilated(x, weights["conv"], (4, 4), "SAME", dimension_numbers=layout)
    return jax.nn.relu(x).mean((1, 2)) @ weights["matrix"]


shapes = {"conv": (7, 7, 3, 64), "matrix": (64, 1000)}
weights = {name: jax.ShapeDtypeStruct(shape, "float32") for name, shape in shapes.items()}
Path("mine.yaml").write_text(paradl.trace_model(network, weights, (224, 224, 3)).text)
