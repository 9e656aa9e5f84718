#!/bin/sh
# SPDX-License-Identifier: MIT
# In place of tests that this build cannot have: skipped.sh NAME REASON
echo "SKIP $1: $2"
echo "$1: 0 passed, 0 failed, 1 skipped"
