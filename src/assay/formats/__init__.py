"""Foreign files and names ⇄ ours. A format adds readers, writers, aliases and commands through the registry."""
