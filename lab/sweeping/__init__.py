"""Many runs of one command from a single config: which runs there are, how they are started, and their results."""
