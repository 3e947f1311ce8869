"""PhariaStudio, a closed service."""
