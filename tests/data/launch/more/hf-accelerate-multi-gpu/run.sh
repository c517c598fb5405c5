accelerate launch --multi_gpu --num_machines 1 --num_processes 8 --mixed_precision bf16 --dynamo_backend no \
    examples/scripts/sft.py --model_name_or_path meta-llama/Llama-3.2-1B --dataset_name x/y \
    --per_device_train_batch_size 4 --gradient_accumulation_steps 1 --max_length 1024 --use_peft --lora_r 16 --lora_alpha 16
