"""One file per family of adders. Each has `ADDERS`: for each name a function of a seed, which rotates the stream and
shuffles the heads; in `drawn`, it also draws the circuit. `running.ADDERS` has those of all files here.

Seed 0 leaves heads in the order in which they were written. Report an instrument on other seeds than those on which it
was tuned.
"""
