"""In the words of NeMo 2's guides: a recipe, and what is changed of it."""

import nemo_run as run
from nemo.collections import llm

nodes = 4


def configure_recipe(gpus_per_node: int = 8):
    recipe = llm.llama3_8b.pretrain_recipe(
        name="llama3_8b", num_nodes=nodes, num_gpus_per_node=gpus_per_node
    )
    recipe.trainer.strategy.tensor_model_parallel_size = 4
    recipe.trainer.strategy.pipeline_model_parallel_size = 1
    recipe.trainer.strategy.context_parallel_size = 2
    recipe.trainer.strategy.sequence_parallel = True
    recipe.data.global_batch_size = 16 * nodes
    recipe.data.micro_batch_size = 1
    recipe.data.seq_length = 2 * 8192
    recipe.model.config.recompute_granularity = "full"
    return recipe


if __name__ == "__main__":
    run.run(configure_recipe())
