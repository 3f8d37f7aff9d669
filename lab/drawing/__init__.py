"""Primitives for tables and figures, such as a bar with an interval. They know nothing about benchmarks."""
