"""What notebooks show of results."""

import msgspec


class Shown(msgspec.Struct):
    """A result that a notebook shows as a page: its sheet, with the picture of its intervals."""

    def _repr_html_(self) -> str:
        # reports are found by name, as formats are: nothing below imports them
        from importlib import import_module

        return import_module("assay.reports.notebook").html(self)
