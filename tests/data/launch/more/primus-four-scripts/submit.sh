#!/bin/bash
export DOCKER_IMAGE="docker.io/rocm/primus:v25.10"
export NNODES=4
export CPUS_PER_TASK=128
export HSA_NO_SCRATCH_RECLAIM=0
export NVTE_CK_USES_BWD_V3=1
export PRIMUS_TEAM="date-$(date +%Y%m%d)"
export EXP=examples/megatron/configs/MI300X/llama3.1_70B-BF16-pretrain.yaml

mkdir -p output/$PRIMUS_TEAM
bash ./examples/run_slurm_pretrain.sh \
    --train_iters 20 \
    --global_batch_size 256 2>&1 | tee output/$PRIMUS_TEAM/log.txt
