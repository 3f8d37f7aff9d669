"""Trains a model on a dataset of problems, and writes checkpoints."""
