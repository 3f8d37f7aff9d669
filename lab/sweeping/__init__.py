"""Many runs of one command, made from a single config: which runs there are, and how they are started."""
