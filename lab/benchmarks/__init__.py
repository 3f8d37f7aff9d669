"""Sets of problems, each with its own rules of scoring."""
