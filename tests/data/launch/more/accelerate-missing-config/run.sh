accelerate launch --config_file configs/fsdp2.yaml --num_processes 8 train_sft.py \
  --model_name_or_path Qwen/Qwen2.5-7B --per_device_train_batch_size 2 \
  --gradient_accumulation_steps 4 --max_seq_length 4096 --bf16 --gradient_checkpointing
