export NNODES=8
export GPUS_PER_NODE=8
export TP=2 CP=4
