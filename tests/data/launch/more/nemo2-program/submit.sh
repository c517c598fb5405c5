#!/bin/bash
#SBATCH -N 2
#SBATCH --ntasks-per-node=8
#SBATCH --gres=gpu:8
#SBATCH -J nemo2-gpt-5b
#SBATCH -t 12:00:00

export CUDA_DEVICE_MAX_CONNECTIONS=1

srun --container-image=nvcr.io/nvidia/nemo:24.12 \
     --container-mounts=$PWD:/workspace,/data:/data \
     --container-workdir=/workspace \
     python pretrain_gpt.py
