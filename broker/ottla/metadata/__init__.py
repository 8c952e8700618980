"""Metadata records, the immutable image and the controller are pure; feed and active connect them to the quorum."""
