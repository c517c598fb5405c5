"""In the words of torchtitan 0.3's config_registry.py."""

from torchtitan.components.loss import ChunkedLossWrapper, CrossEntropyLoss
from torchtitan.components.optimizer import default_adamw
from torchtitan.config import CompileConfig, ParallelismConfig, TrainingConfig
from torchtitan.distributed.activation_checkpoint import FullAC, SelectiveAC
from torchtitan.models.llama3 import model_registry
from torchtitan.trainer import Trainer


def llama3_8b() -> Trainer.Config:
    model_spec = model_registry("8B")
    return Trainer.Config(
        loss=ChunkedLossWrapper.Config(loss_fn=CrossEntropyLoss.Config()),
        model_spec=model_spec,
        optimizer=default_adamw(lr=3e-4),
        training=TrainingConfig(local_batch_size=1, seq_len=8192, steps=1000),
        activation_checkpoint=SelectiveAC.Config(),
    )


def llama3_8b_long() -> Trainer.Config:
    config = llama3_8b()
    config.training.seq_len = 4 * 8192
    config.parallelism = ParallelismConfig(context_parallel_degree=4, tensor_parallel_degree=2)
    config.activation_checkpoint = FullAC.Config()
    config.compile = CompileConfig(enable=True)
    return config
