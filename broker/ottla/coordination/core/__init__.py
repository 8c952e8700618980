"""Which partition of an internal topic a group or transactional id belongs to, and the frame of its records. Pure."""
