"""Reasons to reject or flag a grade that was otherwise good: one file each, raising Rejected or returning a finding."""
