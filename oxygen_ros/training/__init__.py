"""How the demo's tiny pi0.5 is made: data from the simulator, a differentiable model, training, scores.

Command-line tools; nothing of the running product imports them.
"""
