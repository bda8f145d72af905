"""Benchmarks of Rushlight: every figure is a ratio against another engine measured in the same run."""
