"""inspect_ai's logs: `.eval` archives and `.json` files of version 2 are read. Its tasks are not run here, and nothing
of inspect_ai itself is needed."""
