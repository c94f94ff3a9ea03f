"""Figures of a replay, taken while it runs; what they hold does not grow with the bag, or is bounded."""
