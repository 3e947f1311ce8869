"""What determines the numbers of a config, written down, and the refusal to run when it has changed. Nothing runs
here."""
