"""The log dirs of a broker: ownership, loading, checkpoints, open files, and a dir that fails."""
