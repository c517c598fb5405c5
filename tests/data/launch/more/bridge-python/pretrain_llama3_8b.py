#!/usr/bin/env python3
"""torchrun --nproc_per_node=8 pretrain_llama3_8b.py"""

from megatron.bridge.recipes.llama.llama3 import llama3_8b_pretrain_config
from megatron.bridge.training.gpt_step import forward_step
from megatron.bridge.training.pretrain import pretrain


def main() -> None:
    cfg = llama3_8b_pretrain_config()
    cfg.model.tensor_model_parallel_size = 4
    cfg.model.pipeline_model_parallel_size = 1
    cfg.model.context_parallel_size = 1
    cfg.model.sequence_parallel = True
    cfg.model.seq_length = 8192
    cfg.dataset.sequence_length = 8192
    cfg.train.micro_batch_size = 1
    cfg.train.global_batch_size = 256
    cfg.train.train_iters = 1000
    cfg.optimizer.lr = 3e-4
    cfg.ddp.use_distributed_optimizer = True
    cfg.logger.log_interval = 10
    pretrain(config=cfg, forward_step_func=forward_step)


if __name__ == "__main__":
    main()
