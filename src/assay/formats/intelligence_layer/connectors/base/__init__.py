"""Types that connectors and the evaluation share."""
