accelerate launch --num_processes 8 -m axolotl.cli.train qlora-fsdp-70b.yml
