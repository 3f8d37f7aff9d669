"""The page of a probing run: charts, a drawing of the circuit, and what the figures say in words."""
