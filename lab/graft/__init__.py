"""A pretrained Llama with parts: other positions, other attention, and tokens that it must not write."""
