"""What direct answers and followed rules cost on the same problems (Number Cookbook, Table 2)."""
