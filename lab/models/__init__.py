"""Models, from token ids to logits: where weights come from, how they are loaded, and which weights are trained."""
