"""YAML files of tasks, groups and tags: an index of names, and the definitions that they are. Nothing is run here but
the functions that tasks name, when somebody asks for their value."""
