"""What `ottla acls` knows of rules: their words (`words`), and which of them decides (`verdict`)."""
