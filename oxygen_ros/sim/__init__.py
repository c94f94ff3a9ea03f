"""A simulated humanoid at a table, its scripted expert, and the sentences that are true about it.

MuJoCo and numpy only: no ROS and no torch. The demo node, the data generator and the scorer use it.
"""
