#!/bin/bash
function run_gpt() {
    local tp=$1
    local pp=$2
    local mbs=$3
    shift 3
    torchrun --nproc_per_node 8 --nnodes 2 pretrain_gpt.py \
        --num-layers 32 --hidden-size 4096 --num-attention-heads 32 \
        --seq-length 2048 --max-position-embeddings 2048 \
        --tensor-model-parallel-size $tp \
        --pipeline-model-parallel-size $pp \
        --micro-batch-size $mbs --global-batch-size 64 \
        --bf16 --use-distributed-optimizer "$@"
}
run_gpt 4 2 1 --sequence-parallel
