torchrun --nproc_per_node 8 --nnodes 4 pretrain_gpt.py \
  --num-layers 80 --hidden-size 8192 --num-attention-heads 64 --seq-length 4096 --max-position-embeddings 4096 \
  --tensor-model-parallel-size 8 --pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage 3 \
  --micro-batch-size 1 --global-batch-size 64 --bf16
