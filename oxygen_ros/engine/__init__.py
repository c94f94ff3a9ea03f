"""Requests, scheduler, budget and the engine that owns the accounts. No torch, no ROS."""
