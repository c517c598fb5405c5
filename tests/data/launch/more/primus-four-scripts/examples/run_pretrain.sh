#!/bin/bash
###############################################################################
# Copyright (c) 2025, Advanced Micro Devices, Inc. All rights reserved.
#
# See LICENSE for license information.
###############################################################################

set -e

LOG_INFO() { if [ "$NODE_RANK" = "0" ]; then echo "[NODE-$NODE_RANK($HOSTNAME)] [INFO] $*"; fi; }
LOG_ERROR() { echo "[NODE-$NODE_RANK($HOSTNAME)] [ERROR] $*" >&2; }

export MASTER_ADDR=${MASTER_ADDR:-localhost}
export MASTER_PORT=${MASTER_PORT:-1234}
export NNODES=${NNODES:-1}
export NODE_RANK=${NODE_RANK:-0}
export GPUS_PER_NODE=${GPUS_PER_NODE:-8}

PRIMUS_PATH=$(realpath "$(dirname "$0")/..")
export DATA_PATH=${DATA_PATH:-"${PRIMUS_PATH}/data"}

# Available models: see examples/megatron/configs
EXP=${EXP:-"examples/megatron/exp_pretrain.yaml"}
if [ ! -f "${EXP}" ]; then
    LOG_ERROR "The specified EXP file does not exist: ${EXP}" "Primus will use the default configuration in the code."
    exit 1
fi

# ------------------- NCCL and RCCL Settings -------------------
export HIP_VISIBLE_DEVICES=$(seq -s, 0 $((GPUS_PER_NODE - 1)))
export NCCL_IB_GID_INDEX=3
export NCCL_CROSS_NIC=0
export HSA_ENABLE_SDMA=1
export GPU_MAX_HW_QUEUES=${GPU_MAX_HW_QUEUES:-2}
export CUDA_DEVICE_MAX_CONNECTIONS=${CUDA_DEVICE_MAX_CONNECTIONS:-1}
export NVTE_USE_CAST_TRANSPOSE_TRITON=1

DISTRIBUTED_ARGS=(
    --nproc_per_node "${GPUS_PER_NODE}"
    --nnodes "${NNODES}"
    --node_rank "${NODE_RANK}"
    --master_addr "${MASTER_ADDR}"
    --master_port "${MASTER_PORT}"
)

torchrun "${DISTRIBUTED_ARGS[@]}" primus/train.py --config "$EXP" "$@"
