"""The layers of validation, one family a file; verify.py has them in the order in which they are tried.

Each layer is a function that checks a trial. It returns what it found, or raises an Objection.
"""
