"""One static site of many runs: records in, a folder of pages and side files out. No model is opened, no torch."""
