/* SPDX-License-Identifier: MIT */
#include <cptx/epilogue.h>

#include "base/base.h"
