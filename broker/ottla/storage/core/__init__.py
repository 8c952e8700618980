"""What decides in storage: producers, settings, plans of compaction, names of files. Pure."""
