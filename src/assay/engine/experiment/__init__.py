"""One config, one folder: binds a config's names, finds existing rows, and drives the three executors. Nothing here
makes a row by itself."""
