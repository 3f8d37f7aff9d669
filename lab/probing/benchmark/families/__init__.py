"""One file per family of adders. Each file has a dictionary `ADDERS`: for the name of each adder, a function that makes
the adder from a seed. The seed rotates the stream and shuffles the heads; in `drawn`, it also draws the circuit.
`running.ADDERS` collects the dictionaries of all files here.

Seed 0 leaves heads in the order in which they were written. Report an instrument on other seeds than those on which it
was tuned.
"""
