#!/bin/bash
#SBATCH -N 4
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=8
srun --container-image=nvcr.io/nvidia/nemo:23.11 bash -c "
  python /opt/NeMo/examples/nlp/language_modeling/megatron_gpt_pretraining.py \
  --config-path=conf --config-name=megatron_gpt_config \
  trainer.num_nodes=4 trainer.devices=8 trainer.precision=bf16-mixed \
  trainer.max_steps=300000 \
  model.micro_batch_size=1 model.global_batch_size=512 \
  model.tensor_model_parallel_size=8 model.pipeline_model_parallel_size=2 \
  +model.virtual_pipeline_model_parallel_size=4 \
  model.num_layers=48 model.hidden_size=6144 model.ffn_hidden_size=24576 \
  model.num_attention_heads=48 model.encoder_seq_length=4096 model.max_position_embeddings=4096 \
  model.sequence_parallel=True model.megatron_amp_O2=True model.optim.name=distributed_fused_adam \
  model.activations_checkpoint_granularity=full model.activations_checkpoint_method=uniform \
  model.activations_checkpoint_num_layers=1 \
  ~model.data.index_mapping_dir exp_manager.exp_dir=/results
"
