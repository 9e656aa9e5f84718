/* SPDX-License-Identifier: MIT */
#include <cptx/vector.h>

#include "base/base.h"
