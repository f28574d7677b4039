"""The modules of scripts/results/race.py: methods, rows, readings, advice, tables and figures."""
