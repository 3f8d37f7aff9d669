"""A model as data: what it computes (graph.py), whether that is allowed (operations.py, flow.py, constants.py), how
large it is (counting.py), and its results (program.py). No code of the submission runs here.
"""
