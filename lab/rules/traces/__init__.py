"""Rules at work: a rule runs under a tracer, which writes the trace that a model learns to follow."""
