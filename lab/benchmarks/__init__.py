"""Problem sets with rules of their own."""
