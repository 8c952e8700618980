"""Pure: no clock, disk, network or chance. Secrets, times and random bytes come with the call."""
