"""Runs a submission in its own process, which gives up every right that it does not need, and records its model.

child.py starts the process and asks it questions; worker.py answers them in the process, confined by confinement.py;
tape.py records the model's pass.
"""
