"""Makes one static site from many runs: reads run directories, writes a page and side files. No model, no torch."""
