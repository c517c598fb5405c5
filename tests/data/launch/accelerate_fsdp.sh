accelerate launch --config_file accelerate_fsdp.yaml train.py \
  --model_name_or_path meta-llama/Meta-Llama-3-8B --max_length 4096 \
  --per_device_train_batch_size 2 --gradient_accumulation_steps 4 --logging_steps 5
