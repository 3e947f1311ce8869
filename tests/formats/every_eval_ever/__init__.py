"""Every Eval Ever records."""
