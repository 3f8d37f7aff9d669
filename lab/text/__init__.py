"""Turns problems into strings and tokens, and reads answers back."""
