#!/bin/bash
# A 13B model on 4 x a3-mega (H100 80GB x 8): FSDP in the node, data parallel between nodes
CLUSTER=a3mega-test
ZONE=us-east4-a
PROJECT=my-gpu-project
BUCKET=gs://my-maxtext-runs
IMAGE=gcr.io/${PROJECT}/maxtext_gpu_runner
NAME=llama13b-$(date +%m%d%H%M)

xpk workload create \
  --cluster=${CLUSTER} \
  --zone=${ZONE} \
  --project=${PROJECT} \
  --workload=${NAME} \
  --docker-image=${IMAGE} \
  --device-type=h100-mega-80gb-8 \
  --num-nodes=4 \
  --priority=high \
  --command "python3 MaxText/train.py MaxText/configs/base.yml \
    run_name=${NAME} base_output_directory=${BUCKET} \
    hardware=gpu \
    base_num_decoder_layers=40 base_emb_dim=5120 base_mlp_dim=13824 \
    base_num_query_heads=40 base_num_kv_heads=40 head_dim=128 vocab_size=32000 \
    mlp_activations=['silu','linear'] \
    per_device_batch_size=4 max_target_length=4096 \
    ici_fsdp_parallelism=8 dcn_data_parallelism=4 dcn_fsdp_parallelism=1 \
    remat_policy=minimal attention=cudnn_flash_te \
    dtype=bfloat16 weight_dtype=float32 \
    dataset_type=synthetic enable_checkpointing=false steps=50"
