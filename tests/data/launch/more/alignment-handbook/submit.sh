#!/bin/bash
# as in scripts/README.md: launch.slurm {model} {task} {precision} {accelerator} {optional args}
sbatch --job-name=handbook_sft --nodes=2 recipes/launch.slurm zephyr-7b-beta sft full deepspeed_zero3 '--gradient_accumulation_steps=2 --report_to=tensorboard'
