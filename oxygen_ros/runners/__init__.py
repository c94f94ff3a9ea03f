"""How a model executes."""
