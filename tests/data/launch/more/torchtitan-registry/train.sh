#!/bin/bash
set -e
export NGPU=8
MODULE=llama3 CONFIG=llama3_8b ./run_train.sh \
    --parallelism.tensor_parallel_degree 2 \
    --training.local_batch_size 2 \
    --training.steps 500 \
    --compile.enable
