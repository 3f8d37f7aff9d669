"""Configs: how they are read (`loading`) and what they may say (`schema`). Imports no torch."""
