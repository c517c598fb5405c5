#!/bin/bash
set -e
ENV=$1
CURRENT_DIR="$( cd "$( dirname "$0" )" && pwd )"
MEGATRON_PATH=$( dirname $( dirname ${CURRENT_DIR}))
if [ $ENV = dsw ]; then
    export CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7
    NNODES=1
    NODE_RANK=0
    GPUS_PER_NODE=8
elif [ $ENV = dlc ]; then
    NNODES=4
    NODE_RANK=${RANK}
    GPUS_PER_NODE=8
fi
MODEL_SIZE=$2
BATCH_SIZE=$3
GLOBAL_BATCH_SIZE=$4
SEQ_LEN=$5
PR=$6
TP=$7
PP=$8
SP=$9
DO=${10}
if [ $MODEL_SIZE = 0.5B ]; then
NUM_LAYERS=24
HIDDEN_SIZE=896
NUM_ATTN_HEADS=14
INTERMEDIATE_SIZE=4864
NUM_KEY_VALUE_HEADS=2
elif [ $MODEL_SIZE = 7B ]; then
NUM_LAYERS=28
HIDDEN_SIZE=3584
NUM_ATTN_HEADS=28
INTERMEDIATE_SIZE=18944
NUM_KEY_VALUE_HEADS=4
fi
if [ $PR = fp16 ]; then
    pr_options=" --fp16 --apply-query-key-layer-scaling"
elif [ $PR = bf16 ]; then
    pr_options=" --bf16"
elif [ $PR = fp8 ]; then
    pr_options=" --bf16 --fp8-hybrid --fp8-amax-compute-algo max --fp8-amax-history-len 1024"
fi
if [ $SP = true ] && [ $TP -gt 1 ]; then
    sp_options=" --sequence-parallel"
elif [ $SP = false ]; then
    sp_options=" "
fi
if [ $DO = true ]; then
    do_options=" --use-distributed-optimizer"
fi
DISTRIBUTED_ARGS="--nproc_per_node $GPUS_PER_NODE --nnodes $NNODES --node_rank $NODE_RANK --master_addr $MASTER_ADDR --master_port $MASTER_PORT"
megatron_options=" \
        --micro-batch-size ${BATCH_SIZE} \
        --global-batch-size ${GLOBAL_BATCH_SIZE} \
        --num-layers ${NUM_LAYERS} \
        --hidden-size ${HIDDEN_SIZE} \
        --num-attention-heads ${NUM_ATTN_HEADS} \
        --ffn-hidden-size ${INTERMEDIATE_SIZE} \
        --seq-length ${SEQ_LEN} \
        --max-position-embeddings 32768 \
        --tensor-model-parallel-size ${TP} \
        --pipeline-model-parallel-size ${PP} \
        --swiglu --normalization RMSNorm --use-rotary-position-embeddings \
        --group-query-attention --num-query-groups ${NUM_KEY_VALUE_HEADS} \
        --add-qkv-bias --disable-bias-linear --untie-embeddings-and-output-weights \
        --padded-vocab-size 152064"
run_cmd="torchrun $DISTRIBUTED_ARGS pretrain_qwen.py
 ${megatron_options} ${pr_options} ${sp_options} ${do_options}"
eval ${run_cmd}
set +x
