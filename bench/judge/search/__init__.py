"""Web search for agents: a provider finds, pages are read under limits, the job's own model may sum up."""
