"""Workloads for `benchmarks.compare_trees`. Only public entry points are used: the modules behind them have other names
in other trees."""
