"""A network by a name on the command line: an ONNX file, or a function of a Python file."""

import sys
from importlib import import_module
from pathlib import Path

from paradl.grids.reading.errors import InputError, shorten
from paradl.sweep.importing.networks.graph import ImportedNetwork

EXAMPLE = "such as torchvision.models:resnet18 --shape 3,224,224"


def import_network(source: str, shape: str | None, name: str, allow: bool) -> ImportedNetwork:
    """Return the network of an .onnx file, or of a module that PACKAGE.MODULE:FUNCTION returns."""
    sizes = None if shape is None else _read_shape(shape)
    if source.endswith(".onnx"):
        from paradl.sweep.importing.networks.onnx_file import read_onnx

        return read_onnx(Path(source), sizes, name=name, allow_unknown=allow)
    package, colon, function = source.partition(":")
    if not colon:
        what = f"expected an .onnx file or PACKAGE.MODULE:FUNCTION, got {shorten(source)}"
        raise InputError(what, advice=EXAMPLE)
    if sizes is None:
        raise InputError("the shape of a sample is not given", where="--shape", advice=EXAMPLE)
    from paradl.sweep.importing.networks.torch_module import trace_torch

    # Files of the folder, which a script's own path does not have.
    folder = str(Path.cwd())
    sys.path.insert(0, folder)
    try:
        named = getattr(import_module(package.removesuffix(".py")), function)
        is_module = hasattr(named, "state_dict") and not isinstance(named, type)
        module = named if is_module else named()
    # Any code of the user's may run here, and fail in any way.
    except (Exception, SystemExit) as error:
        reason = (str(error).splitlines() or [""])[0][:200]
        raise InputError(
            f"{source} does not run: {type(error).__name__}: {reason}",
            advice="install it" if isinstance(error, ModuleNotFoundError) else EXAMPLE,
        ) from None
    finally:
        sys.path.remove(folder)
    if not hasattr(module, "named_parameters"):
        raise InputError(
            f"{source} returns {shorten(module)}, not a PyTorch module", advice=EXAMPLE
        )
    return trace_torch(module, sizes, name=name, allow_unknown=allow)


def _read_shape(text: str) -> list[int]:
    """Return the sizes in a text such as 3,224,224."""
    try:
        sizes = [int(part) for part in text.replace("x", ",").split(",")]
    except ValueError:
        sizes = []
    if not sizes or min(sizes) < 1 or max(sizes) > 2**20:
        raise InputError(
            f"expected whole numbers, got {shorten(text)}", where="--shape", advice=EXAMPLE
        )
    return sizes
