"""Makes one static site from many runs: records in, a folder of pages and side files out. No model, no torch."""
