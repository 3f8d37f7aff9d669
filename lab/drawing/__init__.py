"""Tables and figures as primitives: what a bar with an interval looks like. Knows no benchmark."""
