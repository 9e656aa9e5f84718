/* SPDX-License-Identifier: MIT */
#include <cptx/mma.h>

#include "base/base.h"
