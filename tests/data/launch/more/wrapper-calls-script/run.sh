#!/bin/bash
cd examples
bash run_mcore_qwen.sh dlc 7B 1 8 4096 bf16 4 2 true true
