"""`assay verify`: recompute labels and metrics from the stored rows, and check every file's seal."""

from assay import api
from assay.cli import verb
from assay.cli._options import own_config_option, paths_argument, trust_option
from assay.cli._output import format_option, show_all
from assay.errors import RunFailed


@verb("verify")
@paths_argument
@own_config_option
@trust_option
@format_option
def command(paths: tuple[str, ...], config: str | None, form: str, as_json: bool) -> None:
    """Verify the experiments in each PATH: an experiment's folder, or a folder with some below it.

    Judges answer from the log of their calls: nobody is asked, nothing is paid and nothing is written. Exit code 1 if
    anything differs or is damaged.
    """
    found = api.verify([*paths], config)
    show_all(found, form, as_json=as_json)
    if bad := [folder.folder for folder in found if not folder.ok]:
        raise RunFailed(f"not as it should be: {', '.join(bad)}")
