"""One Python file per rule, named after its task; lab/text/rulebook.py says what a rule may contain."""
