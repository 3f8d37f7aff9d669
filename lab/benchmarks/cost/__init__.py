"""The cost of direct answers and of rule following on the same problems (Number Cookbook, Table 2)."""
