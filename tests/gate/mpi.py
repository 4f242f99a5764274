#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs MPI programs with several MPIs, numbers of ranks and table sizes: see tests/lib/mpi.py."""

import sys

from lib import mpi

if __name__ == "__main__":
    sys.exit(mpi.main())
