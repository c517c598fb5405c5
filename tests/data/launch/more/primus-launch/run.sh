export EXP=exp.yaml
export NNODES=2 GPUS_PER_NODE=8
bash ./examples/run_pretrain.sh
