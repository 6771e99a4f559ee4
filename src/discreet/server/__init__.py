"""The curator: a service that holds data and answers questions about them (`discreet serve`)."""
