#!/usr/bin/bash
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 1
NGPU=8 LOG_RANK=0,7 CONFIG_FILE="./train_configs/llama3_8b.toml" ./run_llama_train.sh \
	--experimental.pipeline_parallel_degree 4 \
	--experimental.pipeline_parallel_split_points layers.8,layers.16,layers.24 \
	--experimental.pipeline_parallel_schedule 1f1b \
	--experimental.pipeline_parallel_microbatches 8 \
	--training.batch_size 8
