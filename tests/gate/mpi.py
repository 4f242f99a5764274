#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""MPI programs on several MPIs, ranks and sizes of the tables: see tests/lib/mpi.py."""

import sys

from lib import mpi

if __name__ == "__main__":
    sys.exit(mpi.main())
