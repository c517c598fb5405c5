# Megatron-Bridge: overrides of a recipe.
NNODES=${SLURM_NNODES:-8}
torchrun --nproc-per-node=8 --nnodes=$NNODES run_recipe.py --recipe llama3_70b_pretrain_config \
  model.tensor_model_parallel_size=4 model.pipeline_model_parallel_size=4 \
  model.virtual_pipeline_model_parallel_size=5 model.context_parallel_size=2 \
  model.sequence_parallel=true train.micro_batch_size=1 train.global_batch_size=128 \
  dataset.seq_length=8192 mixed_precision=bf16_with_fp8_current_scaling_mixed \
  ddp.overlap_param_gather=false checkpoint.save=/results
