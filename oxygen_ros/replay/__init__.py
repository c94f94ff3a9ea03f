"""Replay: a recorded bag through the live code, without ROS and without a network; numbers and a verdict."""
