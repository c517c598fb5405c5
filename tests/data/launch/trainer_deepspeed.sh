# A script with Hugging Face's Trainer, by DeepSpeed.
MODEL=meta-llama/Llama-2-7b-hf
deepspeed --num_nodes=2 --num_gpus 8 run_clm.py \
  --model_name_or_path $MODEL --dataset_name wikitext --do_train --bf16 \
  --per_device_train_batch_size 1 --gradient_accumulation_steps 8 --block_size 4096 \
  --gradient_checkpointing --deepspeed ds_zero3.json --learning_rate 2e-5 --output_dir out
