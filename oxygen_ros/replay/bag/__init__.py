"""Bags as rosbag2 writes them: read whole or damaged, in the order of time; written as MCAP or sqlite3."""
