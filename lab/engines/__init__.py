"""Engines: they turn prompts into completions, and measure what these cost."""
