"""The op table, one file per family: forward on raw arrays, gradient formulas, and with them what is saved."""
