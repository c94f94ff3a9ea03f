"""Model families and what they share: attention, linear layers, sampling, flow integration."""
