"""The leader's view of its followers, and how fast copies may go. Pure; time is an argument."""
