#!/bin/bash
#SBATCH --job-name=DeepSeek-V3-bench
#SBATCH --nodes=128
#SBATCH --gpus-per-node=8
#SBATCH --ntasks-per-node=8
#SBATCH --time=04:00:00
#SBATCH --mem=0
#SBATCH --exclusive
#SBATCH --segment=16

# Parallel configuration; may be set from outside: TP=1 PP=16 sbatch sbatch_deepseek_v3.sh
: "${TP:=2}"
: "${PP:=8}"
: "${CP:=1}"
: "${EP:=64}"
: "${ETP:=1}"
: "${MBS:=1}"
: "${GBS:=8192}"
: "${SEQ_LEN:=4096}"
: "${PR:=fp8}"
: "${MEGATRON_PATH:=/workspace/Megatron-LM}"
: "${CONTAINER_IMAGE:=/lustre/share/dsv3_25.06.sqsh}"

export CUDA_DEVICE_MAX_CONNECTIONS=1
export NCCL_NVLS_ENABLE=0
export NVTE_FUSED_ATTN=1
export NVTE_NORM_FWD_USE_CUDNN=1
export NVTE_NORM_BWD_USE_CUDNN=1
export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
export PYTHONWARNINGS=ignore

WORKSPACE=$(dirname "$(readlink -f "$0")")
OUTPUT_PATH=${WORKSPACE}/output/TP${TP}PP${PP}EP${EP}-$(date +%y%m%d_%H%M%S)
mkdir -p "${OUTPUT_PATH}"

MODEL_ARGS=(
    # Distributed args
    --distributed-timeout-minutes 60
    --tensor-model-parallel-size ${TP}
    --pipeline-model-parallel-size ${PP}
    --expert-model-parallel-size ${EP}
    --context-parallel-size ${CP}
    --expert-tensor-parallel-size ${ETP}
    --use-distributed-optimizer
    --overlap-grad-reduce
    --overlap-param-gather

    # Training args
    --use-mcore-models
    --sequence-parallel
    --use-flash-attn
    --disable-bias-linear
    --micro-batch-size ${MBS}
    --global-batch-size ${GBS}
    --train-samples 585937500
    --exit-duration-in-mins 220
    --no-check-for-nan-in-loss-and-grad
    --no-rope-fusion
    --cross-entropy-loss-fusion
    --cross-entropy-fusion-impl te
    --manual-gc
    --manual-gc-interval 10
    --transformer-impl transformer_engine
    --enable-experimental

    # Data args
    --seq-length ${SEQ_LEN}
    --data-cache-path ${WORKSPACE}/data_cache
    --tokenizer-type HuggingFaceTokenizer
    --tokenizer-model deepseek-ai/DeepSeek-V3
    --data-path /lustre/data/slimpajama_text_document
    --split 99,1,0
    --no-mmap-bin-files
    --no-create-attention-mask-in-dataloader
    --num-workers 6

    # Network size args
    --num-layers 61
    --hidden-size 7168
    --ffn-hidden-size 18432
    --num-attention-heads 128
    --kv-channels 128
    --max-position-embeddings ${SEQ_LEN}
    --position-embedding-type rope
    --rotary-base 10000
    --make-vocab-size-divisible-by 3232
    --normalization RMSNorm
    --norm-epsilon 1e-6
    --swiglu
    --untie-embeddings-and-output-weights
    --multi-latent-attention
    --attention-dropout 0.0
    --hidden-dropout 0.0
    --clip-grad 1.0
    --weight-decay 0.1
    --qk-layernorm
    --lr-decay-samples 584765624
    --lr-warmup-samples 1536000
    --lr-warmup-init 3.9e-7
    --lr 3.9e-6
    --min-lr 3.9e-7
    --lr-decay-style cosine
    --adam-beta1 0.9
    --adam-beta2 0.95

    # MoE args
    --num-experts 256
    --moe-layer-freq "([0]*3+[1]*58)"
    --moe-ffn-hidden-size 2048
    --moe-shared-expert-intermediate-size 2048
    --moe-router-load-balancing-type seq_aux_loss
    --moe-router-topk 8
    --moe-token-dispatcher-type flex
    --moe-enable-deepep
    --moe-router-pre-softmax
    --moe-grouped-gemm
    --moe-aux-loss-coeff 1e-4
    --moe-router-group-topk 4
    --moe-router-num-groups 8
    --moe-router-topk-scaling-factor 2.5
    --moe-router-score-function sigmoid
    --moe-router-enable-expert-bias
    --moe-router-bias-update-rate 1e-3
    --moe-router-dtype fp32
    --moe-permute-fusion
    --moe-router-force-load-balancing   # benchmark only

    # MLA args
    --q-lora-rank 1536
    --kv-lora-rank 512
    --qk-head-dim 128
    --qk-pos-emb-head-dim 64
    --v-head-dim 128
    --rotary-scaling-factor 40
    --mscale 1.0
    --mscale-all-dim 1.0

    # MTP args
    --mtp-num-layers 1
    --mtp-loss-scaling-factor 0.1

    # Pipeline layout: 32 virtual stages
    --pipeline-model-parallel-layout "Et*3|(tt|)*29m|L"

    # Recompute args
    --recompute-granularity selective
    --recompute-modules mla_up_proj mlp moe_act layernorm

    # Mixed precision args
    --bf16
    --use-precision-aware-optimizer
    --main-grads-dtype fp32
    --main-params-dtype fp32
    --exp-avg-dtype bf16
    --exp-avg-sq-dtype bf16

    # Logging
    --log-interval 1
    --log-throughput
    --logging-level 40
    --eval-iters 32
    --eval-interval 200
    --save-interval 500
    --save ${OUTPUT_PATH}/checkpoints
    --auto-detect-ckpt-format
    --dist-ckpt-strictness log_all
    --init-method-std 0.02
)

if [[ ${PR} == "fp8" ]]; then
    MODEL_ARGS+=(--fp8-recipe blockwise --fp8-format e4m3 --moe-router-padding-for-fp8)
elif [[ ${PR} == "mxfp8" ]]; then
    MODEL_ARGS+=(--fp8-recipe mxfp8 --fp8-format e4m3 --fp8-param-gather --reuse-grad-buf-for-mxfp8-param-ag)
fi

# quote everything once more, since it passes through bash -c
printf -v ARGS_STR '%q ' "${MODEL_ARGS[@]}"

read -r -d '' TRAINING_CMD <<EOF || true
cd ${MEGATRON_PATH};
git rev-parse HEAD;
export PYTHONPATH=${MEGATRON_PATH}:\${PYTHONPATH};
export RANK=\${SLURM_PROCID} LOCAL_RANK=\${SLURM_LOCALID} WORLD_SIZE=\${SLURM_NTASKS};
export MASTER_ADDR=\$(scontrol show hostnames \${SLURM_JOB_NODELIST} | head -n1) MASTER_PORT=6000;
python pretrain_gpt.py ${ARGS_STR}
EOF

srun \
    --mpi=pmix -l \
    --no-container-mount-home \
    --container-image=${CONTAINER_IMAGE} \
    --container-mounts=/lustre:/lustre,${MEGATRON_PATH}:${MEGATRON_PATH} \
    --container-workdir=${MEGATRON_PATH} \
    bash -c "${TRAINING_CMD}" 2>&1 | tee ${OUTPUT_PATH}/${SLURM_JOB_ID}.log
