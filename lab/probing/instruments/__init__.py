"""What activations hold, and what changing them does: one instrument in each file, with its controls."""
