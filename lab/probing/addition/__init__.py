"""Additions: their digits by place, their carries, and the instruments that ask about these."""
