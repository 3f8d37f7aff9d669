"""What a model's activations hold of a sum, and what changing them does."""
