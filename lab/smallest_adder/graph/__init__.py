"""A model as data: what it computes (graph.py), whether it may (operations.py, flow.py, constants.py), how large it is
(counting.py), and what comes of it (program.py). Nothing of the submission runs here.
"""
