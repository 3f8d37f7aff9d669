"""Rules: plain Python files that are prompt and execution at once, the interpreter that runs them, and their traces."""
