/* SPDX-License-Identifier: MIT */
#include <cptx/operand.h>

#include "base/base.h"
