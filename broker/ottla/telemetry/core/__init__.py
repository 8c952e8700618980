"""Which instruments there are, what they say of an image, and how that is written. Pure."""
