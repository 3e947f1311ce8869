"""The entry point that SyGra's documentation names: `python main.py --task … --num_records …`."""

import sys

from assay.cli import main

if __name__ == "__main__":
    main(["sygra", *sys.argv[1:]])
