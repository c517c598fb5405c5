#!/bin/sh
# one 8-GPU node
export CUDA_DEVICE_MAX_CONNECTIONS=1
exec python -m torch.distributed.run --standalone --nnodes=1 --nproc_per_node=8 finetune_qwen3_moe_lora.py
