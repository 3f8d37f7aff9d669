"""The benchmarks inside other people's evaluation tools: their engines and logs, our questions and scores."""
