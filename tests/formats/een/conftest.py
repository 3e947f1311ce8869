from tests.cli.conftest import shell, url

__all__ = ["shell", "url"]
