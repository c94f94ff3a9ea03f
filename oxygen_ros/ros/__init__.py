"""The only folder that imports ROS: nodes, conversions, quality of service."""
