"""The NUPA test of the Number Cookbook: problems, scores, tables, figures and files."""
