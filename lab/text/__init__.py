"""Problems to strings to tokens, and back."""
