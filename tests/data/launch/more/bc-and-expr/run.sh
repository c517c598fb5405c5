#!/bin/bash
NODES=4; GPN=8; TP=4; PP=2; ACC=32
N=`expr $NODES \* $GPN`
GBS=$(echo "$N / ($TP * $PP) * 2 * $ACC" | bc)
MPI_ARGS="-n $N --ppn $GPN"
mpiexec $MPI_ARGS python3 pretrain_gpt.py --tensor-model-parallel-size ${TP} --pipeline-model-parallel-size ${PP} \
 --num-layers 48 --hidden-size 6144 --num-attention-heads 64 --seq-length 2048 --max-position-embeddings 2048 \
 --micro-batch-size 2 --global-batch-size ${GBS} --bf16 --sequence-parallel
