cd "$(dirname "$0")"
sh run_mcore_qwen.sh  \
dsw  \
7B   \
1    \
16 \
1e-5   \
1e-6   \
4096  \
4096  \
bf16  \
4   \
2  \
1 \
true \
true \
true \
false \
sel \
false \
100000  \
/mnt/qwen-datasets/mmap_qwen2.5_datasets_text_document   \
/mnt/qwen-datasets/mmap_qwen2.5_datasets_text_document   \
/mnt/qwen-ckpts/Qwen2.5-7B-hf-to-mcore-te-tp4-pp2  \
100000000   \
100000   \
/workspace/output_mcore_qwen2.5_pretrain
