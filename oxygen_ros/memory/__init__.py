"""Texts kept in a file: pieces put together, stored line by line, found by time and words. No ROS."""
