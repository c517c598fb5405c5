#!/bin/bash
python3 -u -m MaxText.train src/MaxText/configs/base.yml run_name=a model_name=llama3.1-8b \
  per_device_batch_size=2 max_target_length=8192 remat_policy=save_qkv_proj attention=cudnn_flash_te \
  ici_fsdp_parallelism=8 dcn_fsdp_parallelism=4 dcn_data_parallelism=1 hardware=gpu enable_checkpointing=false
