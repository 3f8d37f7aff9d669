"""The smallest transformer that adds two 10-digit integers: trains small adders, verifies and ranks submissions."""
