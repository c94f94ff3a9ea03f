"""Long and rough runs of the nodes as processes: load for hours, a brain that dies, damaged messages."""
