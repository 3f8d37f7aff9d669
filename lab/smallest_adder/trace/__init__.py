"""A submission in a process of its own, which gives up every right that it has no need of, and its model written down.

child.py (seen from outside) -> worker.py (seen from inside), confined by confinement.py; tape.py writes the pass down.
"""
