"""One file per family of adders. Each file has a dictionary `ADDERS`: for the name of each adder, a function that makes
the adder from a seed. The seed rotates the residual stream and shuffles the heads; in `drawn`, it also draws the
circuit. `running.ADDERS` collects the dictionaries of all files here.

Seed 0 does not shuffle heads. Report scores of an instrument on other seeds than those on which it was tuned.
"""
