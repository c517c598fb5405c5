"""Launch scripts and configurations in the words of real ones, and what they mean.

`tests/data/launch` has them: their frameworks' own examples, shortened.
"""

import json
import re
from pathlib import Path

import pytest

from paradl.grids.library import find
from paradl.grids.models.architecture import Architecture
from paradl.grids.models.transformers import read_transformer
from paradl.grids.reading.errors import InputError
from paradl.sweep.launching.reading import read_launch

DATA = Path(__file__).parents[2] / "data" / "launch"
OFF = "overlap_tensor=off"
# By file: PEs, layout, global batch, length, precision, software with its switches; other options.
SCRIPTS = {
    "megatron_llama3_8b.sh": (
        *(32, "tp2 pp1 dp16 mb1 zero1 sp", 128, 8192, "fp8", f"megatron,{OFF}"),
    ),
    "megatron_gpt3_175b.sbatch": (
        *(1024, "tp8 pp16 v2 dp8 mb1 sp recompute=core_attn", 1536, 2048, "amp"),
        f"megatron,overlap_gradients=off,{OFF}",
    ),
    "megatron_args.yaml": (
        *(64, "tp1 ep8 pp4 v8 dp16 mb1 zero1 recompute=layernorm+moe_act", 256, 4096, "bf16"),
        "megatron,overlap_gradients=off,overlap_weights=off,overlap_experts=off,sends_once=off",
    ),
    "deepspeed_gpt.sh": (
        *(64, "tp4 pp4 dp4 mb2 zero1 recompute=blocks", 512, 2048, "bf16", "deepspeed"),
    ),
    "nemo1_megatron_gpt_config.yaml": (
        *(128, "tp8 pp4 v5 dp4 mb1 zero1 sp recompute=core_attn", 256, 4096, "bf16", "megatron"),
    ),
    "nemo2_recipe.py": (
        *(32, "tp4 cp2 pp1 dp4 mb1 zero1 sp recompute=blocks", 64, 16384, "bf16"),
        f"megatron,{OFF}",
    ),
    "bridge_llama3_70b.sh": (
        *(64, "tp4 cp2 pp4 v5 dp2 mb1 zero1 sp", 128, 8192, "fp8"),
        f"megatron,overlap_weights=off,{OFF}",
    ),
    "torchtitan_llama3_70b.toml": (
        *(64, "tp8 pp1 dp8 mb8 zero3 sp recompute=blocks", 64, 8192, "fp8"),
        "fsdp,overlap_tensor=on",
    ),
    # Flags come behind the file that they name.
    "torchtitan_llama3_70b.sh": (
        *(32, "tp8 pp1 dp4 mb2 zero3 sp recompute=blocks", 8, 8192, "fp8"),
        "fsdp,overlap_tensor=on",
    ),
    "torchtitan_config_registry.py:llama3_8b": (
        *(32, "tp1 pp1 dp32 mb1 zero3 recompute=core_attn", 32, 8192, "bf16", "fsdp"),
    ),
    "torchtitan_config_registry.py:llama3_8b_long": (
        *(32, "tp2 cp4 pp1 dp4 mb1 zero3 sp recompute=blocks", 4, 32768, "bf16", "fsdp"),
    ),
    "trainer_deepspeed.sh": (
        *(16, "tp1 pp1 dp16 mb1 zero3 recompute=blocks", 128, 4096, "bf16"),
        "deepspeed,overlap_gradients=on",
    ),
    "accelerate_fsdp.sh": (
        *(32, "tp1 pp1 dp32 mb2 zero3 shard=node recompute=blocks", 256, 4096, "bf16", "fsdp"),
    ),
    "maxtext_mixtral.yml": (
        *(64, "tp1 pp1 dp64 mb4 zero3 shard16 recompute=blocks", 256, 4096, "bf16", "jax"),
    ),
    "primus_llama3_8b.yaml": (64, "tp1 pp1 dp64 mb2 zero1", 128, 8192, "bf16", "megatron"),
    "llamafactory_full.yaml": (
        *(64, "tp1 pp1 dp64 mb1 zero3 recompute=blocks", 128, 2048, "bf16"),
        "deepspeed,overlap_gradients=on",
    ),
}
# Networks of the catalogue that have the sizes in their flags.
SIZES = {
    "megatron_llama3_8b.sh": "llama3_8b",
    "megatron_gpt3_175b.sbatch": "gpt3_175b",
    "nemo1_megatron_gpt_config.yaml": "llama2_70b",
    "megatron_args.yaml": "mixtral_8x7b",
}
# What the file alone does not say.
GIVEN = {name: ("--pe", row[0]) for name, row in SCRIPTS.items()}


@pytest.mark.parametrize("name", SCRIPTS)
def test_what_a_script_means(name, cli):
    pe, layout, batch, length, precision, software = SCRIPTS[name]
    alone = name.endswith((".sh", ".sbatch", "nemo2_recipe.py")) or "nemo1" in name
    given = () if alone else GIVEN[name]
    asked = ("--system", "dgx-h100", "--launch", DATA / name, *given, "--json")
    code, out, err = cli("predict", *asked)
    assert code in (0, 4), err
    answer = json.loads(out)
    assert answer["system"].endswith(f"software={software}")
    stated = {"pe": pe, "strategy": layout, "global_batch": batch, "precision": precision}
    stated["dataset"] = "pile" if length == 2048 else f"pile:length={length}"
    assert {key: answer[key] for key in stated} == stated


@pytest.mark.parametrize(("name", "model"), SIZES.items())
def test_networks_of_sizes(name, model):
    options = read_launch(str(DATA / name)).find_options({"pe": 1024})
    network = read_transformer(Architecture.model_validate(options["model"]))
    expected = read_transformer(find("model", model, Path()))
    assert (network.parameters, network.kinds) == (expected.parameters, expected.kinds)


@pytest.mark.parametrize("folder", sorted((DATA / "more").iterdir()), ids=lambda one: one.name)
def test_scripts_as_people_have_them(folder):
    """Written without a look at the reader, as public ones are, and compared by hand."""
    expected = json.loads((folder / "expected.json").read_text())
    given = {"system": "dgx-h100"} | expected.pop("options", {})
    path = str(folder / expected.pop("file"))
    if "refused" in expected:
        with pytest.raises(InputError, match=re.escape(expected["refused"])):
            read_launch(path).find_options(given)
        return
    script = read_launch(path)
    options = script.find_options(given)
    assert script.find_options(given) == options  # a question changes nothing
    notes, model = "\n".join(script.list_notes(options)), options["model"]
    assert [word for word in expected.pop("notes", ()) if word not in notes] == []
    if "sizes" in expected:
        assert Architecture.model_validate(model)
        sizes = model["family"] | {"tuning": model.get("tuning")}
        assert expected.pop("sizes").items() <= sizes.items()
    assert {key: type(value)(options[key]) for key, value in expected.items()} == expected


def test_variables_defaults_and_what_is_not_understood_are_listed(cli):
    asked = ("--system", "dgx-h100", "--launch", DATA / "megatron_llama3_8b.sh", "--json")
    notes = "\n".join(json.loads(cli("explain", *asked)[1])["notes"])
    assert "NNODES=4" in notes
    assert "grad_reduce_in_bf16" in notes
    assert "init_method_std" not in notes  # of no effect
    _, _, err = cli("predict", "--system", "dgx-h100", "--launch", DATA / "bridge_llama3_70b.sh")
    assert "attention_backend auto" in err
    assert "recipe llama3_70b_pretrain_config" in err


def test_options_come_first(cli):
    script = ("--system", "dgx-h100", "--launch", DATA / "megatron_llama3_8b.sh", "--json")
    options = ("--pe", 64, "--global-batch", 512, "--precision", "bf16", "--sequence", 4096)
    answer = json.loads(cli("predict", *script, *options)[1])
    stated = {"pe": 64, "global_batch": 512, "precision": "bf16", "dataset": "pile:length=4096"}
    assert (stated | {"strategy": "tp2 pp1 dp32 mb1 zero1 sp"}).items() <= answer.items()
    answer = json.loads(cli("predict", *script, "--strategy", "dp32 mb1 zero3")[1])
    assert answer["strategy"] == "tp1 pp1 dp32 mb1 zero3"
    own = ("--system", "dgx-h100:software=fsdp", *script[2:])
    assert json.loads(cli("predict", *own)[1])["software"] == "fsdp"


def test_best_ranks_the_layout_of_a_script_beside_all(cli):
    asked = ("--system", "dgx-h100", "--launch", DATA / "megatron_llama3_8b.sh", "--json")
    rows = json.loads(cli("best", *asked)[1])
    layouts = [row["layout"] for row in rows]
    assert layouts[0] != "tp2 pp1 dp16 mb1 zero1 sp" in layouts


def test_compare_takes_the_runs_of_a_folder_from_a_script(tmp_path, cli):
    line = " iteration {}/ 100 | elapsed time per iteration (ms): 3000.0 | global batch size: 128 |"
    (tmp_path / "log.txt").write_text("\n".join(line.format(step) for step in (1, 2)))
    script = ("--launch", DATA / "megatron_llama3_8b.sh", "--system", "dgx-h100")
    code, out, err = cli("compare", tmp_path, *script, "--json")
    assert code == 0, err
    answer = json.loads(out)
    (row,) = answer["rows"]
    assert (row["p"], row["samples_per_replica"], row["measured_total"]) == (32, 8, 3.0)
    assert row["strategy"] == "tp2 pp1 dp16 mb1 zero1 sp"
    assert answer["notes"]
    table = tmp_path / "runs.csv"
    table.write_text("model\n")
    assert cli("compare", table, *script)[0] == 2


def test_settings_of_a_script_reach_the_runs_that_are_compared(tmp_path, cli):
    """Offload: as predict has it of the same script."""
    script = tmp_path / "start.sh"
    text = (DATA / "megatron_llama3_8b.sh").read_text()
    script.write_text(text.replace("$DATA_ARGS 2", "$DATA_ARGS --optimizer-cpu-offload 2"))
    folder = tmp_path / "runs"
    folder.mkdir()
    (folder / "log.txt").write_text(
        " iteration 1/ 9 | elapsed time per iteration (ms): 3000.0 | global batch size: 128 |\n"
    )
    options = ("--launch", script, "--system", "dgx-h100", "--json")
    code, out, err = cli("compare", folder, *options)
    assert code == 0, err
    (row,) = json.loads(out)["rows"]
    predicted = json.loads(cli("predict", *options)[1])
    whole = ("--launch", DATA / "megatron_llama3_8b.sh", *options[2:])
    assert predicted["memory"] < json.loads(cli("predict", *whole)[1])["memory"]
    assert row["predicted_memory"] == predicted["memory"]
    assert row["predicted_total"] == predicted["iteration_time"]


ASKED = [
    ("megatron.sh", "torchrun --nnodes=$SLURM_NNODES --nproc-per-node=8 {}", "--pe"),
    ("megatron.sh", "torchrun --nnodes=4 --nproc-per-node=$(nvidia-smi -L | wc -l) {}", "--pe"),
    ("megatron.sh", "torchrun --nnodes=4 --nproc-per-node=8 {} --num-layers $1", "--model"),
    (
        "megatron.sh",
        "torchrun --nnodes 4 --nproc-per-node 8 {} --seq-length ${{LEN}}",
        "--sequence",
    ),
    (
        *(
            "megatron.sh",
            "torchrun --nnodes 1 --nproc-per-node 8 {} --tensor-model-parallel-size $T",
        ),
        "--strategy",
    ),
    ("alone.json", '{{"zero_optimization": {{"stage": 3}}}}', "--model"),
    (
        *("recipe.sh", "torchrun --nnodes 1 --nproc-per-node 8 run_recipe.py --recipe llama3_8b"),
        "--sequence",
    ),
    # The ZeRO stage is in a file that is not there.
    (
        "llama.yaml",
        "base_model: meta-llama/Llama-3.1-8B\ndeepspeed: z3.json\nmicro_batch_size: 1\n"
        "sequence_len: 4096\nnum_processes: 8\nnum_machines: 1",
        "z3.json",
    ),
    ("unknown.yaml", "learning_rate: 1", "known:"),
    ("unknown.sh", "echo hello", "known:"),
    ("wrong.yaml", "num_attention_heads: 8\ntensor_model_parallel_size: abc", "tensor_model"),
    ("wrong2.yaml", "num_attention_heads: 8\ncp_comm_type: abc", "a2a"),
    ("cyclic.yaml", "trainer: &a {{num_nodes: 1, more: *a}}", "alias"),
    ("broken.toml", "[parallelism", "TOML"),
    ("broken.py", "def f(:", "Python"),
    ("two.py", "def f(): pass\ndef g(): pass", "f"),
    ("self.json", '{{"deepspeed": "self.json"}}', "20 files"),
]
FLAGS = (
    "pretrain_gpt.py --num-layers 4 --hidden-size 512 --num-attention-heads 8 --bf16 "
    "--max-position-embeddings 512 --vocab-size 512 --micro-batch-size 1 --seq-length 512"
)


@pytest.mark.parametrize(("name", "text", "words"), ASKED)
def test_what_is_not_there_is_asked_for(name, text, words, tmp_path, cli):
    path = tmp_path / name
    path.write_text(text.format(FLAGS))
    code, out, err = cli("predict", "--system", "dgx-h100", "--launch", path)
    assert (code, out) == (2, "")
    assert words in err.splitlines()[-1]
    assert len(err) < 1000


def test_further_arguments_are_no_value_of_a_flag(tmp_path, cli):
    path = tmp_path / "pretrain.sh"
    start = "torchrun --nnodes 1 --nproc-per-node 8 "
    path.write_text(
        f'{start}{FLAGS} --tensor-model-parallel-size 2 --sequence-parallel ${{EXTRA_ARGS}} "$@"'
    )
    asked = ("predict", "--system", "dgx-h100", "--global-batch", 64, "--launch", path)
    code, _, err = cli(*asked)
    assert code == 0
    assert "tp2 pp1 dp4 mb1 sp" in err
    assert "EXTRA_ARGS" in err


def test_the_last_launch_of_several_is_read_and_the_others_named(tmp_path, cli):
    path = tmp_path / "pretrain.sh"
    start = "torchrun --nnodes 1 --nproc-per-node 8 "
    lines = [f"{start}{FLAGS} --tensor-model-parallel-size {degree}" for degree in (4, 2)]
    path.write_text("python prepare.py\n" + "\n".join(lines))
    asked = ("predict", "--system", "dgx-h100", "--global-batch", 64, "--launch", path)
    code, _, err = cli(*asked)
    assert code == 0
    assert "tp2" in err
    assert "torchrun --nnodes 1" in err
    assert "prepare" not in err


def test_nothing_is_executed(tmp_path, cli, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shell = "X=$(touch made) `touch made`\ntorchrun $(touch made) --nnodes 1 --nproc-per-node 8 "
    (tmp_path / "a.sh").write_text(shell + FLAGS)
    code = "import os\nos.system('touch made')\ndef f():\n    c.trainer.nodes = open('made', 'w')\n"
    (tmp_path / "a.py").write_text(code)
    assert cli("predict", "--system", "dgx-h100", "--launch", "a.sh")[0] == 0
    cli("predict", "--system", "dgx-h100", "--launch", "a.py")
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    "text",
    [
        "X=" + "a" * 2_000_000,
        "A=aaaaaaaaaa\n" + "A=$A$A$A$A\n" * 40 + f"torchrun {FLAGS} $A",
        "$(" * 100_000,
        "\"'" * 100_000,
        "if [ 1 = 1 ]; then " * 20_000,
    ],
)
def test_hostile_scripts_end_in_a_message(text, tmp_path, cli):
    path = tmp_path / "hostile.sh"
    path.write_text(text)
    code, _, err = cli("predict", "--system", "dgx-h100", "--launch", path)
    assert code == 2
    assert "Traceback" not in err


def test_names_of_frameworks_write_and_others_are_files(cli):
    given = ("--system", "dgx-h100", "--launch")
    assert "explain" in cli("predict", *given, "megatron")[2]
    assert "megatron" in cli("explain", *given, "megatrom", "--pe", 8)[2]
    assert "--model" in cli("explain", *given, "megatron", "--pe", 8)[2]
