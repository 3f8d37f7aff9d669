"""Training: a model and a dataset in, a checkpoint out."""
