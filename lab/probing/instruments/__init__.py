"""What activations hold, and what changing them does: an instrument a file, with its controls."""
