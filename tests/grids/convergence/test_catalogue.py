"""The catalogue's measured convergence."""

import subprocess
import sys
from pathlib import Path

import pytest

from paradl.grids.convergence.catalogue import (
    EPOCHS,
    explain_missing,
    find_convergence,
    list_known_pairs,
)
from paradl.grids.convergence.points import MEASURED_AS, read_points
from paradl.grids.entries.names import list_names
from paradl.grids.library import find
from paradl.grids.reading.errors import InputError
from paradl.kernels.configuration.convergence import count_epochs


def test_the_shipped_rows_read():
    series = read_points(EPOCHS)
    assert sum(len(line.points) for line in series) == 132
    assert all(line.source for line in series)
    assert not any(line.target.startswith(("fixed", "critical_batch")) for line in series)


def test_data_sets_are_the_catalogue_s():
    assert set(MEASURED_AS) <= set(list_names("dataset"))
    assert set(MEASURED_AS.values()) <= {point.dataset for point in read_points(EPOCHS)}


# Measured networks and data sets that are not in the catalogue.
FOREIGN_MODELS = {
    "bert_large",
    "dimenet++",
    "dlrm",
    "lstm (size of this run not stated)",
    "lstm_2048_256",
    "lstm_2048_512",
    "mask_rcnn_r50",
    "stable_diffusion_v2",
}


def test_each_row_has_names_of_the_catalogue_or_a_foreign_model():
    series = read_points(EPOCHS)
    assert FOREIGN_MODELS.isdisjoint(list_names("model"))
    assert {line.model for line in series} - {*list_names("model")} == FOREIGN_MODELS
    ours = {line.dataset for line in series if line.model not in FOREIGN_MODELS}
    for dataset in ours - {*MEASURED_AS.values()}:
        assert find("dataset", dataset, Path()).name == dataset


def test_all_rows_of_c4_are_reached_by_the_catalogue_s_names():
    series = [line for line in read_points(EPOCHS) if line.dataset.partition(":")[0] == "c4"]
    assert sum(len(line.points) for line in series) == 11
    for line in series:
        entry = find_convergence(line.model, line.dataset, line.target)
        assert entry is not None
        assert (entry.model, entry.dataset) == (line.model, line.dataset)


@pytest.mark.parametrize(
    ("model", "dataset", "tokens", "length"),
    [
        # rcps_gpt3.json: mean tokens to converge at 8,192; rcps_llama31_8b.json: samples at 128.
        ("gpt3_175b", "c4", 1_627_389_952, 2048),
        ("llama3_8b", "c4:length=8192", 345_907.2 * 8192, 8192),
    ],
)
def test_epochs_of_a_text_are_its_published_tokens(model, dataset, tokens, length):
    entry, data = find_convergence(model, dataset), find("dataset", dataset, Path())
    assert entry is not None
    assert data.shape == (1, length)
    assert entry.points[-1].epochs * data.samples * length == pytest.approx(tokens, rel=1e-5)


def test_a_batch_of_other_sequences_is_another_batch():
    assert find_convergence("llama3_8b", "c4") is None
    assert find_convergence("gpt3_175b", "c4:length=8192") is None


@pytest.mark.parametrize(
    ("model", "known"),
    [
        ("llama3_8b", "llama3_8b on c4:length=8192"),
        ("cosmoflow", "cosmoflow on cosmoflow-128"),  # not as the rows call it
    ],
)
def test_known_epochs_of_a_model(model, known):
    assert list_known_pairs(model) == known


def test_a_model_without_epochs_is_told_of_all_pairs_with_a_law():
    known = list_known_pairs("llama2_7b").split(", ")
    assert {"gpt3_175b on c4", "resnet50 on imagenet", "gnmt_v2 on wmt16-en-de"} <= {*known}
    assert not any(pair.startswith("big_lstm") for pair in known)  # of one batch
    for pair in known:
        model, dataset = pair.split(" on ")
        assert find_convergence(model, dataset) is not None


@pytest.mark.parametrize(
    ("model", "dataset", "reason"),
    [
        ("big_lstm", "one-billion-words", "one global batch, 1,024"),
        ("vgg16", "imagenet", "the epochs of 'vgg16' on 'imagenet'"),
    ],
)
def test_why_a_network_of_the_catalogue_has_no_law(model, dataset, reason):
    assert find_convergence(model, dataset) is None
    assert reason in explain_missing(model, dataset)


def test_gnmt_is_found_by_the_catalogue_s_names():
    entry = find_convergence("gnmt_v2", "wmt16-en-de")
    assert entry is not None
    assert entry.target == "sacrebleu>=24.0"


@pytest.mark.parametrize(
    ("kind", "name", "usual"),
    [
        ("model", "biglstm", "big_lstm"),
        ("dataset", "lm1b", "one-billion-words"),
        ("dataset", "wmt16_en_de", "wmt16-en-de"),
    ],
)
def test_other_spellings_are_refused_with_the_catalogue_s(kind, name, usual):
    with pytest.raises(InputError, match=usual):
        find(kind, name, Path())


@pytest.mark.parametrize("dataset", ["imagenet", "imagenet-226", "imagenet-299"])
def test_resnet50_has_the_longest_series(dataset):
    entry = find_convergence("resnet50", dataset)
    assert entry is not None
    assert len(entry.points) == 10
    assert (entry.optimizer, entry.target) == ("lars", "top1>=0.759")
    # MLPerf's reference: 35 epochs up to 3,264 and 86 at 67,840; McCandlish et al. put the
    # critical batch of ResNet-50 at 15,000, by another optimizer and another measure.
    assert entry.epochs_min == pytest.approx(35, rel=0.05)
    assert 30_000 < entry.law.critical_batch < 70_000
    assert count_epochs(entry.law, 67_840) == pytest.approx(85.9, rel=0.05)


def test_cosmoflow_was_measured_at_one_size():
    entry = find_convergence("cosmoflow", "cosmoflow-128")
    assert entry is not None
    assert entry.largest == 1024
    assert "epochs fall from 18.3 at 64 to 17.85 at 128" in entry.warnings[0]
    assert find_convergence("cosmoflow", "cosmoflow-512") is None


@pytest.mark.parametrize("pair", [("vgg16", "imagenet"), ("resnet50", "cifar10"), ("no", "no")])
def test_nobody_measured_others(pair):
    model, dataset = pair
    assert find_convergence(model, dataset) is None
    assert find_convergence(model, dataset, "top1>=0.759") is None


def test_targets():
    entry = find_convergence("resnet50", "imagenet", "top1>=0.759")
    assert entry == find_convergence("resnet50", "imagenet")
    with pytest.raises(InputError, match=r"unknown target 'top1=0.8' of 'resnet50' .*top1>=0.759"):
        find_convergence("resnet50", "imagenet", "top1=0.8")


def test_looking_one_up_needs_neither_jax_nor_units():
    code = (
        "import sys; sys.argv[0] = 'paradl'\n"
        "from paradl.grids.convergence.catalogue import find_convergence; "
        "find_convergence('resnet50', 'imagenet'); "
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"jax", "xarray", "scipy", "pandas", "pint"} & set(run.stdout.split())
