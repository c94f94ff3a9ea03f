"""What a demonstration leaves behind: a run folder with timeline, summary and GIF, and the comparison.

No ROS: bags are read by ``replay/bag``. Only the comparison runs a model.
"""
