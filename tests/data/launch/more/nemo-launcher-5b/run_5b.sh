#!/usr/bin/env bash
# NeMo-Framework-Launcher; run from launcher_scripts/
HYDRA_FULL_ERROR=1 python3 main.py \
    training=gpt3/5b \
    stages=[training] \
    launcher_scripts_path=$PWD \
    data_dir=/lustre/the_pile_gpt3 \
    base_results_dir=$PWD/results \
    training.run.time_limit=\'1-00:00:00\' \
    training.trainer.num_nodes=8 \
    +training.model.optim.grad_sync_dtype=bf16
