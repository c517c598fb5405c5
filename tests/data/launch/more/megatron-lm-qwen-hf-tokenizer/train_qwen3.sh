#!/usr/bin/env bash
set -euxo pipefail
: ${NUM_NODES:=4}
: "${GPUS_PER_NODE:=8}"
MODEL_PARALLEL_ARGS=(
    --tensor-model-parallel-size "${TP:-4}"
    --pipeline-model-parallel-size "${PP:-1}"
    --context-parallel-size "${CP:-2}"
    --sequence-parallel
)
MODEL_ARGS=(
    --num-layers 36
    --hidden-size 4096
    --ffn-hidden-size 12288
    --num-attention-heads 32
    --group-query-attention
    --num-query-groups 8
    --kv-channels 128
    --qk-layernorm
    --seq-length 32768
    --max-position-embeddings 40960
    --position-embedding-type rope
    --rotary-base 1000000
    --swiglu
    --normalization RMSNorm
    --norm-epsilon 1e-6
    --untie-embeddings-and-output-weights
    --disable-bias-linear
    --attention-dropout 0.0
    --hidden-dropout 0.0
    --attention-backend flash
)
torchrun --nproc_per_node="${GPUS_PER_NODE}" --nnodes="${NUM_NODES}" pretrain_gpt.py \
    "${MODEL_ARGS[@]}" "${MODEL_PARALLEL_ARGS[@]}" \
    --micro-batch-size 1 --global-batch-size $(( 16 * NUM_NODES )) --bf16 \
    --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather \
    --recompute-granularity full --recompute-method uniform --recompute-num-layers 1 \
    --tokenizer-type HuggingFaceTokenizer --tokenizer-model Qwen/Qwen3-8B
