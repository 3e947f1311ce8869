"""Records of the Every Eval Ever schema, version 0.3.0, made of rows. They are only written: nothing here reads one."""
