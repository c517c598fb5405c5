#!/bin/bash
# In the words of Megatron-DeepSpeed's examples_deepspeed: the JSON stands in the script.
num_gpus=64
seq_len=2048
zero_stage=1
mp_size=4 ; pp_size=4
no_pp="false"
ds_config=ds_config_gbs512.json
cat <<EOT > $ds_config
{
  "train_batch_size": 512,
  "train_micro_batch_size_per_gpu": 2,
  "steps_per_print": 10,
  "zero_optimization": {"stage": $zero_stage},
  "gradient_clipping": 1.0,
  "bf16": {"enabled": true}
}
EOT
megatron_options="--tensor-model-parallel-size ${mp_size} \
 --pipeline-model-parallel-size ${pp_size} --num-layers 32 --hidden-size 4096 \
 --num-attention-heads 32 --seq-length ${seq_len} --max-position-embeddings ${seq_len} \
 --micro-batch-size 2 --global-batch-size 512 --hidden-dropout 0 --attention-dropout 0 \
 --vocab-size 50257 --bf16 --checkpoint-activations --use-flash-attn-v2"
deepspeed_options="--deepspeed --deepspeed_config ${ds_config} --zero-stage ${zero_stage}"
if [[ "${no_pp}" = "true" ]]; then
deepspeed_options="${deepspeed_options} --no-pipeline-parallel"
fi
deepspeed --num_nodes 8 --num_gpus 8 pretrain_gpt.py ${megatron_options} ${deepspeed_options} &> log
