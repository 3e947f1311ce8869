"""Work directories of evalscope: predictions, reviews and reports. They are only read; no benchmark of it runs here."""
