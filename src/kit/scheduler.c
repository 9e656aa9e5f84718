/* SPDX-License-Identifier: MIT */
#include <cptx/scheduler.h>

#include "base/base.h"
