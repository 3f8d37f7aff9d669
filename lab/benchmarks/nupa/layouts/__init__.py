"""NUPA in the layouts of other projects.

strata.py     the published file as they see it: texts by task and digits
evalchemy.py  rows of evalchemy's NUPA and NUPA5K (JSONL), and its list of the 5,000 texts of NUPA5K
skyrl.py      rows of MarinSkyRL's reward environment (parquet)

All facts come from their public sources, marin-community/evalchemy and marin-community/MarinSkyRL.
"""
