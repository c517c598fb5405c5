#!/bin/bash
set -x
SCRIPT_DIR=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source ${SCRIPT_DIR}/env.sh
. $SCRIPT_DIR/model_8b.sh
get_gbs() {
    echo $(( $1 * 128 ))
}
GBS=$(get_gbs 4)
torchrun --nproc_per_node ${GPUS_PER_NODE} --nnodes ${NNODES} \
    --rdzv_id $RANDOM --rdzv_backend c10d --rdzv_endpoint ${MASTER_ADDR}:29500 \
    pretrain_gpt.py "${MODEL_ARGS[@]}" \
    --tensor-model-parallel-size ${TP} --context-parallel-size ${CP} \
    --micro-batch-size 1 --global-batch-size $GBS --bf16 --use-distributed-optimizer \
    2>&1 | tee logs/$(date +%s).log
