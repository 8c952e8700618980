"""What automata ask for (`effects`), which partition keeps a key (`partitioning`), how records begin (`records`). Pure."""
