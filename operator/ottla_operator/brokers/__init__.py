"""The brokers: their Control service over gRPC, and their own table of settings. Nothing else imports `ottla`."""
