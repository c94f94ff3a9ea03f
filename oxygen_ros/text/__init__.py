"""Text for people: tokens to characters, stop strings, cleaning, sentences. No torch, no ROS."""
