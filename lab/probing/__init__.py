"""What the activations of a model say about a sum, and what changing them does."""
