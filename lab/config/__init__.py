"""Configs: how they are read (`loading`) and what they may contain (`schema`). Does not import torch."""
