"""Recorded runs of a reference implementation, and the comparison of ours with them."""
