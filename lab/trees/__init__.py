"""Speed: what sequences share is computed once, and the rest without padding. Nothing here knows a part by its name."""
