"""The NUPA test of the Number Cookbook: its problems and scores, its tables and figures, its files."""
