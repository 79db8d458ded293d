"""Records in, pages and figures out; nothing here trains."""
