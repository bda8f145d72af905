"""Nodes, saved values, version families and the facts of a graph's lifetime."""
