#!/bin/bash
#SBATCH --nodes=128
#SBATCH --gpus-per-node=8
#SBATCH --ntasks-per-node=8
export PP=${PP:-16}
export EP=${EP:-64}
TRAINING_PARAMS=""
add() { TRAINING_PARAMS="$TRAINING_PARAMS $*"; }
add --distributed-timeout-minutes 60
add --tensor-model-parallel-size ${TP:-1} --pipeline-model-parallel-size $PP
add --expert-model-parallel-size $EP --expert-tensor-parallel-size 1
add --context-parallel-size 1 --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather
add --micro-batch-size 1 --global-batch-size 8192
add --seq-length 4096 --max-position-embeddings 4096
add --num-layers 61 --hidden-size 7168 --ffn-hidden-size 18432 --num-attention-heads 128 --kv-channels 128
add --swiglu --normalization RMSNorm --position-embedding-type rope --disable-bias-linear
add --untie-embeddings-and-output-weights --qk-layernorm --vocab-size 129280 --make-vocab-size-divisible-by 3232
add --multi-latent-attention --q-lora-rank 1536 --kv-lora-rank 512 --qk-head-dim 128 --qk-pos-emb-head-dim 64 --v-head-dim 128
add --num-experts 256 --moe-layer-freq "([0]*3+[1]*58)" --moe-ffn-hidden-size 2048 --moe-shared-expert-intermediate-size 2048
add --moe-router-topk 8 --moe-router-num-groups 8 --moe-router-group-topk 4 --moe-router-score-function sigmoid
add --moe-grouped-gemm --moe-token-dispatcher-type flex --moe-enable-deepep --moe-permute-fusion
add --recompute-granularity selective --recompute-modules mla_up_proj layernorm moe_act
add --fp8-recipe blockwise --fp8-format e4m3 --bf16
srun --mpi=pmix -l python -u pretrain_gpt.py ${TRAINING_PARAMS}
