"""An empty room with rooms: tables, and what is built of whole columns."""
