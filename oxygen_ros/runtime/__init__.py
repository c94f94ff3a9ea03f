"""Between inputs, engine and outputs: mailbox, control cycle, player. No ROS, no torch, time by injection."""
