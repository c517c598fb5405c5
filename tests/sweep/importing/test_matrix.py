"""The matrix of `nvidia-smi topo -m`, laid out as drivers 450 to 570 print it."""

import pytest

from paradl.grids.library import find
from paradl.sweep.importing.machines.devices import read_matrix


def write_matrix(links: list[list[int]]) -> str:
    """As `nvidia-smi topo -m` prints it. links: of each GPU, to all; 0 is a path over PCIe."""
    rows = [
        "\t".join("X" if n == m else f"NV{k}" if k else "SYS" for m, k in enumerate(row))
        for n, row in enumerate(links)
    ]
    names = [f"GPU{n}" for n in range(len(links))]
    head = "\t".join(["", *names, "NIC0", "CPU Affinity", "NUMA Affinity"])
    lines = [f"{name}\t{row}\tNODE\t0-23\t0" for name, row in zip(names, rows, strict=True)]
    end = "NIC0\t" + len(links) * "SYS\t" + " X\n\nLegend:\n\n  X    = Self\n  NV#  = # NVLinks\n"
    return "\n".join([f"\x1b[4m{head}\x1b[0m", *lines, end])


def join_all(count: int, links: int) -> list[list[int]]:
    return [[links * (n != m) for m in range(count)] for n in range(count)]


@pytest.mark.parametrize(
    ("links", "like", "nvlinks", "reason"),
    [
        ([[0, 12, 0, 0], [12, 0, 0, 0], [0, 0, 0, 12], [0, 0, 12, 0]], "dgx-a100", 12, "0-1, 2-3"),
        (join_all(4, 0), "dgx-a100", 0, "other links"),
        (join_all(8, 12), "dgx-a100", 12, ""),  # through switches
        (join_all(4, 4), "xe8545", 12, ""),  # direct
    ],
)
def test_a_matrix_says_what_nvlinks_join(links, like, nvlinks, reason, cli, tmp_path):
    matrix, output = tmp_path / "topo.txt", tmp_path / "mine.yaml"
    # As a shell echoes it, and as srun prints it, of two nodes.
    matrix.write_text("$ srun -N 2 nvidia-smi topo -m\n" + 2 * write_matrix(links))
    code, _, err = cli("import", "machine", matrix, "--like", like, "-o", output)
    assert code == (2 if reason else 0), err
    assert reason in err
    topology = read_matrix(matrix)
    assert (topology.gpus, topology.nvlinks) == (len(links), nvlinks)
    if not reason:
        assert find("system", str(output), tmp_path).pes_per_node == len(links)
