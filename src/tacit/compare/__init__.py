"""Every method under one rule: the same data, the same total budget, the same tuning."""
