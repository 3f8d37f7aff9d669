"""The benchmarks that ask for one sum: two integers of 2-30 digits, and carry-free addition."""
