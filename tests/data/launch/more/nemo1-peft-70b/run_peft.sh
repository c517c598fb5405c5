#!/bin/bash
# NeMo framework playbook: PEFT of Llama 2, inside nvcr.io/nvidia/nemo:24.03.framework

# This is the nemo model we are finetuning
# Change this to match the model you want to finetune
MODEL="./llama2-70b.nemo"

# These are the training datasets (in our case we only have one)
TRAIN_DS="[pubmedqa/data/pubmedqa_train.jsonl]"

# These are the validation datasets (in our case we only have one)
VALID_DS="[pubmedqa/data/pubmedqa_val.jsonl]"

# These are the test datasets (in our case we only have one)
TEST_DS="[pubmedqa/data/pubmedqa_test.jsonl]"

# These are the names of the test datasets
TEST_NAMES="[pubmedqa]"

# This is the PEFT scheme that we will be using. Set to "ptuning" for P-Tuning instead of LoRA
SCHEME="lora"

# This is the concat sampling probability. This depends on the number of files being passed in the train set
# and how much percentage of the fine tuning data would you like to use from each file. Note sum of concat sampling
# probabilities should be 1.0. For example, with two train files and 20% of sample from file1 and 80% from file2, you
# would set CONCAT_SAMPLING_PROBS="[0.2,0.8]".
CONCAT_SAMPLING_PROBS="[1.0]"

# This is the tensor parallel size (splitting tensors among GPUs horizontally)
# Use 1 for the 7B model, 2 for the 13B model, and 8 for the 70B model
TP_SIZE=8

# This is the pipeline parallel size (splitting layers among GPUs vertically)
PP_SIZE=1

# The number of nodes to run this on
# 1 for the 7B and 13B, 2 for the 70B without PEFT
NODE_COUNT=1

# The number of total GPUs used
GPU_COUNT=8

# Where to store the finetuned model and training artifacts
OUTPUT_DIR="/results/llama2-70b-lora"

# Run the PEFT command by appropriately setting the values for the parameters such as the number of steps,
# model checkpoint path, batch sizes etc. For a full reference of parameter
# settings refer to the config at
# https://github.com/NVIDIA/NeMo/blob/main/examples/nlp/language_modeling/tuning/conf/megatron_gpt_finetuning_config.yaml
torchrun --nproc_per_node=${GPU_COUNT} \
/opt/NeMo/examples/nlp/language_modeling/tuning/megatron_gpt_finetuning.py \
    trainer.log_every_n_steps=1 \
    trainer.precision=bf16 \
    trainer.devices=${GPU_COUNT} \
    trainer.num_nodes=${NODE_COUNT} \
    trainer.val_check_interval=20 \
    trainer.max_steps=500 \
    model.restore_from_path=${MODEL} \
    model.peft.peft_scheme=${SCHEME} \
    model.peft.lora_tuning.adapter_dim=32 \
    model.micro_batch_size=1 \
    model.global_batch_size=128 \
    model.tensor_model_parallel_size=${TP_SIZE} \
    model.pipeline_model_parallel_size=${PP_SIZE} \
    model.megatron_amp_O2=True \
    model.sequence_parallel=False \
    model.activations_checkpoint_granularity=selective \
    model.activations_checkpoint_method=uniform \
    model.optim.name=fused_adam \
    model.optim.lr=1e-4 \
    model.answer_only_loss=True \
    model.data.train_ds.file_names=${TRAIN_DS} \
    model.data.train_ds.max_seq_length=2048 \
    model.data.train_ds.concat_sampling_probabilities=${CONCAT_SAMPLING_PROBS} \
    model.data.train_ds.num_workers=0 \
    model.data.validation_ds.file_names=${VALID_DS} \
    model.data.validation_ds.num_workers=0 \
    exp_manager.create_wandb_logger=False \
    exp_manager.checkpoint_callback_params.mode=min \
    exp_manager.explicit_log_dir=${OUTPUT_DIR} \
    exp_manager.resume_if_exists=True \
    exp_manager.resume_ignore_no_checkpoint=True \
    exp_manager.create_checkpoint_callback=True
