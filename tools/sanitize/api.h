/* SPDX-License-Identifier: MIT */
/* How a call of the APIs is written: its name, its parameters, and an expression that is its error. */
#ifndef CPTX_SANITIZE_API_H
#define CPTX_SANITIZE_API_H

#include "san.h"

/* Keeps an error as the thread's last one; returns it. */
int san_last(int error);

/* A call of the runtime: under the lock, and only while the device lives. */
#define CALL(name, parameters, expression)                                                                                  \
	SAN_API int name parameters;                                                                                            \
	SAN_API int name parameters                                                                                             \
	{                                                                                                                       \
		int error = san_enter();                                                                                            \
		if (!error)                                                                                                         \
			error = (expression);                                                                                           \
		san_leave();                                                                                                        \
		return san_last(error);                                                                                             \
	}

/* A call of the runtime that the driver has under another name. */
#define BOTH(runtime, driver, parameters, arguments, expression)                                                            \
	CALL(runtime, parameters, expression)                                                                                   \
	SAN_API int driver parameters;                                                                                          \
	SAN_API int driver parameters { return runtime arguments; }

#endif
