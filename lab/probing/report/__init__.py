"""The page of a probing run: its figures, a drawing of the circuit, and what they say in words."""
