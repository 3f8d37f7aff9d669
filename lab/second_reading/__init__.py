"""A pretrained model that talks as before, and has a number computed when one is asked for."""
