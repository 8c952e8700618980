"""Who somebody is, what they may do, and how much of it. `core` decides; files, sockets and libraries are beside it."""
