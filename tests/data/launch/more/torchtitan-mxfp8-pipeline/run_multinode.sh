#!/bin/bash
# 32 nodes x 8 B200, one pdsh call:
#   pdsh -w b200-[001-032] "cd $PWD && bash run_multinode.sh"
set -ex
NNODES=32
NGPU=8
HEAD=b200-001

PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True" \
torchrun --nnodes=${NNODES} --nproc_per_node=${NGPU} \
    --rdzv_id=titan70b --rdzv_backend=c10d --rdzv_endpoint="${HEAD}:29400" \
    --local-ranks-filter 0 --role rank --tee 3 \
    -m torchtitan.train --job.config_file ./train_configs/llama3_70b.toml \
    --model.converters="quantize.linear.mx" \
    --quantize.linear.mx.recipe_name "mxfp8_cublas" \
    --quantize.linear.mx.filter_fqns="output" \
    --compile.enable \
    --parallelism.pipeline_parallel_degree 4 \
    --parallelism.pipeline_parallel_schedule "Interleaved1F1B"
