"""The prompt of every harness: sections that treatments add to or replace, and what they promise."""
