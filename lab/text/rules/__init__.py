"""One Python file a rule, named after its task; lab/text/rulebook.py says what a rule may consist of."""
