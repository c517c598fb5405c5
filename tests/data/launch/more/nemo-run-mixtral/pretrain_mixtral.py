#!/usr/bin/env python3
"""Mixtral 8x7B pre-training on the Slurm cluster with NeMo 2 / NeMo-Run.

    python pretrain_mixtral.py [--nodes 16] [--tag fp8] [--dryrun]
"""
import argparse
from functools import partial
from typing import Any, Optional

import nemo_run as run

from nemo.collections import llm
from nemo.collections.common.tokenizers.huggingface import AutoTokenizer
from nemo.collections.llm.recipes.precision.mixed_precision import bf16_with_fp8_mixed


def get_parser():
    parser = argparse.ArgumentParser(description="NeMo2.0 Pretraining")
    parser.add_argument("--tag", type=str, default="", help="Optional tag for your experiment title which will be appended after the model/exp name.")
    parser.add_argument("--nodes", type=int, default=16)
    parser.add_argument("--dryrun", action="store_true", help="Do a dryrun and exit")
    parser.add_argument("--slurm", action="store_true", default=True)
    return parser


def slurm_executor(
    user: str,
    host: str,
    remote_job_dir: str,
    account: str,
    partition: str,
    nodes: int,
    devices: int,
    time: str = "04:00:00",
    custom_mounts: Optional[list[str]] = None,
    custom_env_vars: Optional[dict[str, str]] = None,
    container_image: str = "nvcr.io/nvidia/nemo:25.04",
    retries: int = 0,
) -> run.SlurmExecutor:
    mounts = ["/lustre:/lustre"]
    if custom_mounts:
        mounts.extend(custom_mounts)

    env_vars = {
        "TRANSFORMERS_OFFLINE": "1",
        "NCCL_NVLS_ENABLE": "0",
        "NVTE_DP_AMAX_REDUCE_INTERVAL": "0",
        "NVTE_ASYNC_AMAX_REDUCTION": "1",
        "CUDA_DEVICE_MAX_CONNECTIONS": "1",
    }
    if custom_env_vars:
        env_vars |= custom_env_vars

    executor = run.SlurmExecutor(
        account=account,
        partition=partition,
        tunnel=run.SSHTunnel(user=user, host=host, job_dir=remote_job_dir),
        nodes=nodes,
        ntasks_per_node=devices,
        gpus_per_node=devices,
        mem="0",
        exclusive=True,
        gres="gpu:8",
        packager=run.GitArchivePackager(subpath=""),
    )
    executor.container_image = container_image
    executor.container_mounts = mounts
    executor.env_vars = env_vars
    executor.retries = retries
    executor.time = time
    return executor


def main():
    args = get_parser().parse_args()
    exp_name = "mixtral_8x7b_pretrain" + (f"-{args.tag}" if args.tag else "")

    pretrain = llm.mixtral_8x7b.pretrain_recipe(
        dir="/lustre/checkpoints",
        name=exp_name,
        num_nodes=args.nodes,
        num_gpus_per_node=8,
    )

    # data
    pretrain.data.seq_length = 4096
    pretrain.data.micro_batch_size = 1
    pretrain.data.global_batch_size = 1024
    pretrain.data.tokenizer = run.Config(AutoTokenizer, pretrained_model_name="mistralai/Mixtral-8x7B-v0.1")

    # parallelism
    pretrain.trainer.strategy.tensor_model_parallel_size = 2
    pretrain.trainer.strategy.sequence_parallel = True
    pretrain.trainer.strategy.pipeline_model_parallel_size = 4
    pretrain.trainer.strategy.virtual_pipeline_model_parallel_size = 8
    pretrain.trainer.strategy.context_parallel_size = 1
    pretrain.trainer.strategy.expert_model_parallel_size = 8
    pretrain.trainer.strategy.expert_tensor_parallel_size = 1

    # fp8 with delayed scaling
    pretrain.trainer.plugins = bf16_with_fp8_mixed()

    # activation memory
    pretrain.model.config.recompute_granularity = "selective"
    pretrain.model.config.moe_permute_fusion = True
    pretrain.model.config.moe_token_dispatcher_type = "alltoall"

    pretrain.trainer.max_steps = 20000
    pretrain.trainer.val_check_interval = 1000
    pretrain.log.ckpt.save_top_k = 3

    executor = slurm_executor(
        user="jdoe",
        host="login.cluster",
        remote_job_dir="/lustre/jdoe/nemo_run",
        account="coreai",
        partition="batch",
        nodes=pretrain.trainer.num_nodes,
        devices=pretrain.trainer.devices,
    )

    with run.Experiment(f"{exp_name}{args.tag}") as exp:
        exp.add(pretrain, executor=executor, name=exp_name, tail_logs=True if isinstance(executor, run.LocalExecutor) else False)
        if args.dryrun:
            exp.dryrun()
        else:
            exp.run(sequential=True, detach=True)


if __name__ == "__main__":
    main()
