"""Run directories in, tables and figures out. Never touches a live model."""
