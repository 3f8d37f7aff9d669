"""Prompts in, completions and their cost out."""
