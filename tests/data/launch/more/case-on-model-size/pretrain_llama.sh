#!/usr/bin/env bash
set -e
MODEL_SIZE=${1:-13B}
NNODES=${2:-4}
GPUS_PER_NODE=${GPUS_PER_NODE:-8}
case $MODEL_SIZE in
  7B|7b)
    NUM_LAYERS=32; HIDDEN=4096; HEADS=32; FFN=11008
    TP=1; PP=1 ;;
  13B|13b)
    NUM_LAYERS=40; HIDDEN=5120; HEADS=40; FFN=13824
    TP=2; PP=2 ;;
  70B)
    NUM_LAYERS=80; HIDDEN=8192; HEADS=64; FFN=28672
    TP=8; PP=4
    EXTRA="--group-query-attention --num-query-groups 8"
    ;;
  *) echo "unknown size $MODEL_SIZE" >&2; exit 1 ;;
esac
if [[ $TP -gt 1 ]]; then SP="--sequence-parallel"; else SP=""; fi
if [ "$PP" -gt 1 ] && [ -n "$VPP" ]; then
  EXTRA="$EXTRA --num-virtual-stages-per-pipeline-rank $VPP"
fi
DP=$(( NNODES * GPUS_PER_NODE / (TP * PP) ))
MBS=2
let GBS=DP*MBS*8
torchrun --nnodes=$NNODES --nproc-per-node=$GPUS_PER_NODE --rdzv-backend=c10d \
  --rdzv-endpoint=$HEAD_NODE:29500 \
  pretrain_gpt.py \
  --num-layers $NUM_LAYERS --hidden-size $HIDDEN --num-attention-heads $HEADS \
  --ffn-hidden-size $FFN $EXTRA $SP \
  --tensor-model-parallel-size $TP --pipeline-model-parallel-size $PP \
  --micro-batch-size $MBS --global-batch-size $GBS \
  --seq-length 4096 --max-position-embeddings 4096 \
  --swiglu --normalization RMSNorm --position-embedding-type rope --disable-bias-linear \
  --untie-embeddings-and-output-weights --vocab-size 32000 --make-vocab-size-divisible-by 128 \
  --use-distributed-optimizer --bf16 --train-iters 100000 --lr 3e-4
