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

/* A call of the driver, whose errors the runtime does not remember. */
#define DRIVER(name, parameters, expression)                                                                                \
	SAN_API int name parameters;                                                                                            \
	SAN_API int name parameters                                                                                             \
	{                                                                                                                       \
		int error = san_enter();                                                                                            \
		if (!error)                                                                                                         \
			error = (expression);                                                                                           \
		san_leave();                                                                                                        \
		return error;                                                                                                       \
	}

/* A call that needs no device. */
#define PLAIN(type, name, parameters, ...)                                                                                  \
	SAN_API type name parameters;                                                                                           \
	SAN_API type name parameters { __VA_ARGS__ }

/* A call of the runtime that the driver has under another name. */
#define BOTH(runtime, driver, parameters, expression)                                                                       \
	CALL(runtime, parameters, expression)                                                                                   \
	DRIVER(driver, parameters, expression)

#endif
