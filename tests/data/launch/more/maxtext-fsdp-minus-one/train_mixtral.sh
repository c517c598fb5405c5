set -e
export EXECUTABLE="train.py"
export RUN_NAME=""
for ARGUMENT in "$@"; do
    IFS='=' read -r KEY VALUE <<< "$ARGUMENT"
    export "$KEY"="$VALUE"
done
python3 MaxText/$EXECUTABLE MaxText/configs/base.yml model_name=mixtral-8x7b per_device_batch_size=2 \
   ici_fsdp_parallelism=-1 ici_tensor_parallelism=4 dcn_data_parallelism=2 max_target_length=4096 remat_policy=full \
   megablox=True sparse_matmul=True attention=flash dtype=bfloat16 weight_dtype=bfloat16
