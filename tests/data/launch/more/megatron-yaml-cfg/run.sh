#!/bin/bash
torchrun --nproc_per_node 8 --nnodes 4 pretrain_gpt.py --yaml-cfg gpt_config.yaml
