"""Training runs with faults: job.py trains and compares, signals.py, disks.py and hosts.py have the
faults, journal.py computes what a disk keeps; runs/processes.py starts and ends programs. For
storm.py, disk_faults.py, broken_networks.py and nights.py.
"""

import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(SOURCE / "scripts"))
