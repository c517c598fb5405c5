#!/bin/bash
# Primus, 4 nodes MI300X
export HF_TOKEN=${HF_TOKEN:-""}
export GPUS_PER_NODE=8
export DOCKER_IMAGE=docker.io/rocm/primus:v25.10

./primus-cli slurm srun -N 4 -p amd-rccl \
    -- train pretrain --config configs/MI300X/mixtral_8x7B_v0.1-BF16-pretrain.yaml
