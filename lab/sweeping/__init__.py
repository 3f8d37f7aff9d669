"""Runs of a command, many of one config: which they are, and what starts them."""
