deepspeed --num_gpus 8 --master_port 29501 run_clm.py \
    --deepspeed ds_config.json \
    --model_name_or_path meta-llama/Llama-2-13b-hf \
    --bf16 True \
    --block_size 2048 \
    --per_device_train_batch_size 4 \
    --gradient_accumulation_steps 8 \
    --gradient_checkpointing True \
