"""The log of one partition: `log` owns its segments; the other modules are what can be done with it."""
