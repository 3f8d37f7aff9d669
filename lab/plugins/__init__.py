"""The lab's benchmarks in other evaluation tools, which bring their engines and logs; questions and scores are ours."""
