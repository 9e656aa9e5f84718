/* SPDX-License-Identifier: MIT */
#include <cptx/reduce.h>

#include "base/base.h"
