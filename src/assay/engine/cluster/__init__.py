"""One experiment on many machines: the plan that workers share, what a worker does, and who starts it. Rows are made by
the ordinary executors, which know nothing of this room, and no row travels through the engine that places workers."""
