"""The layers of validation, one family a file; table.py has them in the order in which they are tried.

Each layer is a function that looks at a trial and says what it found, or objects.
"""
