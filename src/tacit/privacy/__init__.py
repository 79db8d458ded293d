"""What a release costs: mechanisms, releases, accounting, exact noise, the ledger."""
