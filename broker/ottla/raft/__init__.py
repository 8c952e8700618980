"""The metadata quorum: `core` decides (pure), `store` keeps its promises on disk, `driver` performs its effects,
`voter_changes` adds and removes voters while it works."""
