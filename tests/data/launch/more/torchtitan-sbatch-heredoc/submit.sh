#!/bin/bash
# ./submit.sh [nodes]        llama3 70B, HSDP over two replicas, CP 2

NODES=${1:-8}
GPUS=8
JOB=titan70b-${NODES}n
CONFIG=train_configs/llama3_70b.toml

sbatch <<EOF
#!/bin/bash
#SBATCH --job-name=${JOB}
#SBATCH --nodes=${NODES}
#SBATCH --ntasks-per-node=1
#SBATCH --gres=gpu:${GPUS}
#SBATCH --output=logs/${JOB}-%j.log

export MASTER=\$(scontrol show hostnames \$SLURM_JOB_NODELIST | head -n1)
export PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True"
srun torchrun --nnodes=${NODES} --nproc_per_node=${GPUS} --rdzv_id=\$SLURM_JOB_ID \\
     --rdzv_backend=c10d --rdzv_endpoint=\$MASTER:29500 \\
     train.py --job.config_file ${CONFIG} \\
     --training.data_parallel_replicate_degree 2 \\
     --training.tensor_parallel_degree 4 \\
     --training.batch_size 4 \\
     --experimental.context_parallel_degree 2 \\
     --float8.enable_float8_linear \\
     --float8.enable_fsdp_float8_all_gather --float8.precompute_float8_dynamic_scale_for_fsdp \\
     --training.compile
EOF
