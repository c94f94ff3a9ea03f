"""Robots: small paired maps between a robot's numbers and the numbers its checkpoint was trained on."""
