"""The metadata quorum: core, progress and quorum are pure; store and driver do the I/O."""
