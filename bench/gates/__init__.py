"""Reasons to reject or flag a grade that was otherwise good: one file each, a function that raises Rejected."""
