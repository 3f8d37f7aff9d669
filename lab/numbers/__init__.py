"""Exact arithmetic: representations, operations, tasks, sampling, splits, metrics, statistics. No torch."""

import sys

sys.set_int_max_str_digits(0)  # the limit of 4,300 digits protects servers; here long numbers are the subject
