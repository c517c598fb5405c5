"""LoRA fine-tuning of Qwen3-30B-A3B with Megatron-Bridge on one node."""
import torch

from megatron.bridge.recipes.qwen.qwen3_moe import qwen3_30b_a3b_peft_config
from megatron.bridge.training.config import ConfigContainer
from megatron.bridge.training.finetune import finetune
from megatron.bridge.training.gpt_step import forward_step

SEQ_LENGTH = 4096


def build_config() -> ConfigContainer:
    cfg = qwen3_30b_a3b_peft_config(peft_scheme="lora")

    # checkpoints
    cfg.checkpoint.pretrained_checkpoint = "/data/qwen3_30b_a3b_megatron"
    cfg.checkpoint.save = "/data/out/qwen3_30b_a3b_lora"
    cfg.checkpoint.save_interval = 200

    # LoRA
    cfg.peft.dim = 16
    cfg.peft.alpha = 32
    cfg.peft.target_modules = ["linear_qkv", "linear_proj"]

    # parallelism
    cfg.model.tensor_model_parallel_size = 2
    cfg.model.pipeline_model_parallel_size = 1
    cfg.model.context_parallel_size = 1
    cfg.model.expert_model_parallel_size = 4
    cfg.model.expert_tensor_parallel_size = 1
    cfg.model.sequence_parallel = True

    # batch
    cfg.model.seq_length = SEQ_LENGTH
    cfg.dataset.seq_length = SEQ_LENGTH
    cfg.dataset.packed_sequence_specs.packed_sequence_size = SEQ_LENGTH
    cfg.train.micro_batch_size = 1
    cfg.train.global_batch_size = 64
    cfg.train.train_iters = 1000
    cfg.train.eval_interval = 100

    # memory
    cfg.model.recompute_granularity = "full"
    cfg.model.recompute_method = "uniform"
    cfg.model.recompute_num_layers = 1

    cfg.optimizer.lr = 1e-4
    cfg.optimizer.use_distributed_optimizer = True
    cfg.ddp.use_distributed_optimizer = True
    cfg.mixed_precision = "bf16_mixed"
    return cfg


if __name__ == "__main__":
    torch.backends.cuda.matmul.allow_tf32 = True
    finetune(config=build_config(), forward_step_func=forward_step)
