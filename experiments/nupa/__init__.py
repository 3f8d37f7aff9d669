"""One small model for the 53 tasks of NUPA: it writes on a tape, one place a line (README.md)."""
