"""Sentences said aloud one after another: queue, barge-in, the command that speaks. No ROS."""
