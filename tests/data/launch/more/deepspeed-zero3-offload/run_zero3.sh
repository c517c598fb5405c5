#!/bin/bash
OUTPUT=$1
ZERO_STAGE=$2
if [ "$OUTPUT" == "" ]; then
    OUTPUT=./output
fi
if [ "$ZERO_STAGE" == "" ]; then
    ZERO_STAGE=3
fi
deepspeed --hostfile=hostfile --num_nodes=2 --num_gpus=8 train.py \
   --model_name_or_path mistralai/Mistral-7B-v0.1 \
   --per_device_train_batch_size 2 \
   --per_device_eval_batch_size 4 \
   --max_seq_length 4096 \
   --gradient_accumulation_steps 4 \
   --gradient_checkpointing \
   --bf16 \
   --deepspeed zero3_offload.json \
   &> $OUTPUT/training.log
