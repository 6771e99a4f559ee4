"""Where the service keeps what it must remember: one database, numbered migrations."""
