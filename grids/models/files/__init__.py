"""Files of networks: templates and families, ParaDL's own, those of Hugging Face."""
