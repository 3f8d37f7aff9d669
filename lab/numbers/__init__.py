"""Exact arithmetic: representations, operations, tasks, sampling, splits, metrics, statistics. No torch."""

import sys

sys.set_int_max_str_digits(0)  # Python's 4,300 guard servers against strangers; here long numbers are the subject
