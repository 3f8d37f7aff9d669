"""One file a family of adders. Each has `ADDERS`: names to functions of a seed, which turns the stream and the heads.

Seed 0 leaves heads in the order in which they were written; what an instrument was tuned on should not be the seeds
that it is reported on.
"""
