"""Small training runs with faults; for disk_faults.py and storm.py."""
