"""Training runs with faults: processes.py starts, hits and ends them, job.py trains and compares,
signals.py, disks.py and hosts.py have the faults, journal.py computes what a disk keeps. For
storm.py, disk_faults.py, broken_networks.py and soak.py.
"""

import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(SOURCE / "scripts"))
