"""What an array is: dtypes and promotion, devices, random streams and the kernels on raw NumPy arrays."""
