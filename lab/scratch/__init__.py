"""Small models that are trained from scratch: a Llama of rows of numbers, and its positions and attention."""
