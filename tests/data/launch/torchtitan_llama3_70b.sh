# As torchtitan's run_train.sh is called, here with four nodes.
NGPU=${NGPU:-"8"}
export CONFIG_FILE=${CONFIG_FILE:-"torchtitan_llama3_70b.toml"}
torchrun --nnodes 4 --nproc_per_node=${NGPU} --rdzv_backend c10d --local-ranks-filter 0 \
  -m torchtitan.train --job.config_file ${CONFIG_FILE} --training.local_batch_size=2 "$@"
