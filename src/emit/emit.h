#ifndef CPTX_EMIT_H
#define CPTX_EMIT_H

#include "base/base.h"

/* The error for a target name that does not exist, with the nearest that does. */
void emit_unknown_target(const char *target, cptx_error *err);

#endif
