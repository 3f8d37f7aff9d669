"""A model as data: what it computes (graph.py), whether this is allowed (operations.py, flow.py), how large it is
(counting.py), and how to run it (program.py). No code of the submission runs here.
"""
