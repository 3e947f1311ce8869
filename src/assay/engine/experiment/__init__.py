"""One config, one folder: binds a config's names, finds existing rows, and drives the three executors. What a step
itself does is in the other rooms."""
