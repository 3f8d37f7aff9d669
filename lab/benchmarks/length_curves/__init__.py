"""Accuracy against length, for models trained from scratch."""
