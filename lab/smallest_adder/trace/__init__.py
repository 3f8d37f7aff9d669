"""Runs a submission in its own process, which gives up every right that it does not need, and writes its model down.

child.py (seen from outside) -> worker.py (seen from inside), confined by confinement.py; tape.py writes the pass down.
"""
