import torch
from megatron.core.distributed import DistributedDataParallelConfig
from megatron.core.optimizer import OptimizerConfig

from nemo import lightning as nl
from nemo.collections import llm
from nemo.collections.nlp.modules.common.tokenizer_utils import get_nmt_tokenizer

if __name__ == "__main__":
    seq_length = 2048
    micro_batch_size = 4
    global_batch_size = 512

    tokenizer = get_nmt_tokenizer("megatron", "GPT2BPETokenizer")

    ## setup the dataset
    data = llm.PreTrainingDataModule(
        paths=["/data/pile/my-gpt2_text_document"],
        seq_length=seq_length,
        micro_batch_size=micro_batch_size,
        global_batch_size=global_batch_size,
        tokenizer=tokenizer,
        num_workers=2,
        split="99,1,0",
    )

    ## initialize a 5B GPT model
    gpt_config = llm.GPTConfig(
        num_layers=24,
        hidden_size=4096,
        ffn_hidden_size=16384,
        num_attention_heads=32,
        seq_length=seq_length,
        init_method_std=0.01,
        hidden_dropout=0.1,
        attention_dropout=0.1,
        layernorm_epsilon=1e-5,
        make_vocab_size_divisible_by=128,
        recompute_granularity="full",
        recompute_method="block",
        recompute_num_layers=4,
    )
    model = llm.GPTModel(gpt_config, tokenizer=data.tokenizer)

    ## initialize the strategy
    strategy = nl.MegatronStrategy(
        tensor_model_parallel_size=2,
        pipeline_model_parallel_size=1,
        context_parallel_size=1,
        sequence_parallel=True,
        pipeline_dtype=torch.bfloat16,
        ddp=DistributedDataParallelConfig(
            check_for_nan_in_grad=True,
            grad_reduce_in_fp32=True,
            overlap_grad_reduce=True,
            overlap_param_gather=True,
            use_distributed_optimizer=True,
        ),
    )

    ## setup the optimizer
    opt_config = OptimizerConfig(
        optimizer="adam",
        lr=1.2e-4,
        weight_decay=0.1,
        bf16=True,
        use_distributed_optimizer=True,
    )
    opt = nl.MegatronOptimizerModule(config=opt_config)

    trainer = nl.Trainer(
        devices=8,
        num_nodes=2,
        max_steps=20000,
        accelerator="gpu",
        strategy=strategy,
        plugins=nl.MegatronMixedPrecision(precision="bf16-mixed"),
        log_every_n_steps=10,
        val_check_interval=1000,
        limit_val_batches=10,
    )

    nemo_logger = nl.NeMoLogger(
        log_dir="/data/results/gpt_5b",  ## logs and checkpoints will be written here
    )

    llm.train(
        model=model,
        data=data,
        trainer=trainer,
        log=nemo_logger,
        tokenizer="data",
        optim=opt,
    )
