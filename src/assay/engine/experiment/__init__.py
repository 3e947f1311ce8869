"""One config, one folder: binds a config's names, finds the rows that exist, and drives the three executors."""
