"""Programs beside the nodes: generated pages, comparisons, reports."""
