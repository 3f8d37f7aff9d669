"""Runs a submission in its own process, which gives up every right that it does not need, and records its model.

child.py (seen from outside) -> worker.py (seen from inside), confined by confinement.py; tape.py records the pass.
"""
