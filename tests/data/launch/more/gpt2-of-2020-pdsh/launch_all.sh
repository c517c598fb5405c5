#!/bin/bash
# start the 8.3B run on four 8-GPU nodes
HOSTS='gpu[01-04]'
HEAD=gpu01
WORKDIR=/gpfs/fs1/users/$USER/megatron-lm-1.1

pdsh -R ssh -f 4 -w "$HOSTS" \
    "cd $WORKDIR && MASTER_ADDR=$HEAD NNODES=4 NODE_RANK=%n bash pretrain_gpt2_8.3b.sh" 2>&1 | tee gpt2_8.3b.log
