#!/bin/bash
# LLaMA-Factory on several machines without a scheduler

NODES=(192.168.0.1 192.168.0.2)
WORKDIR=/data/LLaMA-Factory
YAML=examples/train_full/qwen2_5_32b_full_sft_ds3.yaml

for i in "${!NODES[@]}"; do
  ssh -o StrictHostKeyChecking=no "${NODES[$i]}" \
    "cd $WORKDIR && source .venv/bin/activate && \
     FORCE_TORCHRUN=1 NNODES=${#NODES[@]} NODE_RANK=$i NPROC_PER_NODE=8 \
     MASTER_ADDR=${NODES[0]} MASTER_PORT=29500 \
     llamafactory-cli train $YAML > log.$i 2>&1" &
done
wait
