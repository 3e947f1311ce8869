"""inspect_ai's logs, read and written: `.eval` archives and `.json` files of version 2. Its tasks are not run here, and
nothing of inspect_ai itself is needed."""
