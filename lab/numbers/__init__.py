"""Exact arithmetic: representations, operations, tasks, sampling, splits, metrics, statistics. No torch."""
