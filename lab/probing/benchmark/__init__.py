"""Adders whose circuits are known, and how well each instrument finds them."""
