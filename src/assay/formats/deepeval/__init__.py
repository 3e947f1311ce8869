"""Test runs that deepeval has written, with single answers and with conversations. They are only read: nothing here
writes one, and no path in them is followed."""
