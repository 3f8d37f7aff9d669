"""The lab's benchmarks inside other evaluation tools, with their engines and logs but our questions and scores."""
