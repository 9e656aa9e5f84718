/* Rules of matrix instructions. */
#include "arch/check.h"
