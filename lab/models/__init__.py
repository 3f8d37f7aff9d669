"""Token ids in, logits out: where weights come from, how they are loaded, what is tuned on them."""
