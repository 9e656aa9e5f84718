/* SPDX-License-Identifier: MIT */
#include <cptx/params.h>

#include "base/base.h"
