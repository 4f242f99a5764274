# SPDX-License-Identifier: BSD-2-Clause
"""``python -m tcam``: the command line."""

import os
import sys

import tcam

os.execv(tcam.command(), ["tcam", *sys.argv[1:]])
