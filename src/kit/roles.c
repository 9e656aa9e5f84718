/* SPDX-License-Identifier: MIT */
#include <cptx/roles.h>

#include "base/base.h"
