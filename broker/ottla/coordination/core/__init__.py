"""What automata ask for, which partition of an internal topic keeps a key, and the frame of its records. Pure."""
