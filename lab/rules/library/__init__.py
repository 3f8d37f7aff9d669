"""One Python file per rule, named after its task; lab/rules/rulebook.py says what a rule may contain."""
