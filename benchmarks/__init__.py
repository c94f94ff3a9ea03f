"""The benchmark: executors side by side on the same weights, in one process, by one command.

Nothing of the product imports this package. ``scripts/bench --help`` lists what it can do.
"""
