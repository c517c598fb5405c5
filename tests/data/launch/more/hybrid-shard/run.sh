torchrun --nnodes 4 --nproc_per_node 8 train.py --model_name_or_path mistralai/Mistral-7B-v0.3 --fsdp "hybrid_shard auto_wrap offload" \
  --fsdp_config fsdp.json --per_device_train_batch_size 1 --gradient_accumulation_steps 4 --max_seq_length 8192 --bf16 --optim adamw_8bit
