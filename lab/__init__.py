"""The number lab: how language models understand numbers, measured, tuned and opened up."""
