"""One config, one folder: binds a config's names, finds the rows that exist, and drives the three executors. It has no
loop of its own over responses or labels."""
