/* SPDX-License-Identifier: MIT */
/*
 * The C++17 versions of macros of <cptx/cptx.h>, which in C use compound literals, designated initializers in any order and
 * _Generic.  cptx.h includes this header in C++.
 *
 * Builder calls look as in C, with their modifiers in any order: cptx_ld(k, p, .type = CPTX_F32, .space = CPTX_GLOBAL).
 * Options (.block = { 256 } of cptx_kernel_begin and the like) are designated initializers, which gcc and clang know before
 * C++20 too, but only in the order of the struct.  Where C takes &(cptx_load_opt){ ... }, write CPTX_OPT(cptx_load_opt,
 * ...); where C takes (cptx_val[]){ a, b }, declare an array with a name, or use cptx_vec and cptx_args.
 */
#ifndef CPTX_CPLUSPLUS_H
#define CPTX_CPLUSPLUS_H

#pragma GCC system_header /* without this g++ warns (-Wextra) of each field that options leave out */

#include <cptx/module.h>

#include <initializer_list>

inline cptx_val cptx_v_(cptx_val v) { return v; }
inline cptx_val cptx_v_(float f) { return cptx_val_float_(f); }
inline cptx_val cptx_v_(double f) { return cptx_val_float_(f); }
inline cptx_val cptx_v_(int i) { return cptx_val_int_(i); }
inline cptx_val cptx_v_(long i) { return cptx_val_int_(i); }
inline cptx_val cptx_v_(long long i) { return cptx_val_int_(i); }
inline cptx_val cptx_v_(unsigned i) { return cptx_val_uint_(i); }
inline cptx_val cptx_v_(unsigned long i) { return cptx_val_uint_(i); }
inline cptx_val cptx_v_(unsigned long long i) { return cptx_val_uint_(i); }
#define CPTX_V(x) cptx_v_(x)
#define CPTX_NONE_ (cptx_val{})

/* The address of a temporary, which lives until the end of the full expression: as long as the call whose argument it is. */
template <class T> const T *cptx_address_(const T &t) { return &t; }
#define CPTX_OPT_(type, ...) cptx_address_<type>({ __VA_ARGS__ })
#define CPTX_OPT(type, ...) cptx_address_<type>({ .size = CPTX_OPT_SIZE(type), __VA_ARGS__ })

using cptx_vals_ = std::initializer_list<cptx_val>;
inline cptx_val cptx_asm_(cptx_kernel *k, cptx_site at, const char *text, cptx_vals_ v)
{
	return cptx_asm_(k, at, text, v.begin(), v.size());
}
inline cptx_val cptx_pack_(cptx_kernel *k, cptx_site at, cptx_vals_ v) { return cptx_pack_(k, at, v.begin(), v.size()); }
inline cptx_val cptx_list_(cptx_kernel *k, cptx_site at, cptx_vals_ v) { return cptx_list_(k, at, v.begin(), v.size()); }
#define cptx_asm(...) CPTX_ASM_X_(__VA_ARGS__, )
#define cptx_vec(k, ...) cptx_pack_((k), CPTX_HERE, { __VA_ARGS__ })
#define cptx_args(k, ...) cptx_list_((k), CPTX_HERE, { __VA_ARGS__ })
#define CPTX_ASM_X_(k, text, ...) cptx_asm_((k), CPTX_HERE, (text), { __VA_ARGS__ })

/* clang-format off */
/* One builder call.  Each argument has the form .field = value; with the name of a struct in front of it, it is an assignment. */
#define CPTX_INSN_AT_(name, kernel, at, ...)                                                                                \
	[&](cptx_kernel *cptx_k_, cptx_site cptx_at_) {                                                                         \
		struct name##_ cptx_s_ = {};                                                                                        \
		CPTX_SET_(CPTX_SET_N_(__VA_ARGS__), cptx_s_, __VA_ARGS__)                                                           \
		return name##_s_(cptx_k_, cptx_at_, &cptx_s_);                                                                      \
	}((kernel), (at))
#define CPTX_AGAIN_(name, again, kernel, ...)                                                                               \
	[&](cptx_kernel *cptx_k_, cptx_site cptx_at_, cptx_again *cptx_a_) {                                                    \
		struct name##_ cptx_s_ = {};                                                                                        \
		CPTX_SET_(CPTX_SET_N_(__VA_ARGS__), cptx_s_, __VA_ARGS__)                                                           \
		return name##_again_(cptx_k_, cptx_at_, &cptx_s_, cptx_a_);                                                         \
	}((kernel), CPTX_HERE, (again))
#define CPTX_FAST_(again, name, ...)                                                                                        \
	[&] {                                                                                                                   \
		static cptx_again again;                                                                                            \
		return name##_a_(&again, __VA_ARGS__, .z_ = 0);                                                                     \
	}()
#define CPTX_SET_(n, ...)  CPTX_SET2_(n, __VA_ARGS__)
#define CPTX_SET2_(n, ...) CPTX_SET_##n##_(__VA_ARGS__)
#define CPTX_SET_N_(...) CPTX_SET_N2_(__VA_ARGS__, 32, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, 15,  \
	14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define CPTX_SET_N2_(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, A, B, C, D, E, F,        \
	count, ...) count
#define CPTX_SET_1_(s, x) s x;
#define CPTX_SET_2_(s, x, ...) s x; CPTX_SET_1_(s, __VA_ARGS__)
#define CPTX_SET_3_(s, x, ...) s x; CPTX_SET_2_(s, __VA_ARGS__)
#define CPTX_SET_4_(s, x, ...) s x; CPTX_SET_3_(s, __VA_ARGS__)
#define CPTX_SET_5_(s, x, ...) s x; CPTX_SET_4_(s, __VA_ARGS__)
#define CPTX_SET_6_(s, x, ...) s x; CPTX_SET_5_(s, __VA_ARGS__)
#define CPTX_SET_7_(s, x, ...) s x; CPTX_SET_6_(s, __VA_ARGS__)
#define CPTX_SET_8_(s, x, ...) s x; CPTX_SET_7_(s, __VA_ARGS__)
#define CPTX_SET_9_(s, x, ...) s x; CPTX_SET_8_(s, __VA_ARGS__)
#define CPTX_SET_10_(s, x, ...) s x; CPTX_SET_9_(s, __VA_ARGS__)
#define CPTX_SET_11_(s, x, ...) s x; CPTX_SET_10_(s, __VA_ARGS__)
#define CPTX_SET_12_(s, x, ...) s x; CPTX_SET_11_(s, __VA_ARGS__)
#define CPTX_SET_13_(s, x, ...) s x; CPTX_SET_12_(s, __VA_ARGS__)
#define CPTX_SET_14_(s, x, ...) s x; CPTX_SET_13_(s, __VA_ARGS__)
#define CPTX_SET_15_(s, x, ...) s x; CPTX_SET_14_(s, __VA_ARGS__)
#define CPTX_SET_16_(s, x, ...) s x; CPTX_SET_15_(s, __VA_ARGS__)
#define CPTX_SET_17_(s, x, ...) s x; CPTX_SET_16_(s, __VA_ARGS__)
#define CPTX_SET_18_(s, x, ...) s x; CPTX_SET_17_(s, __VA_ARGS__)
#define CPTX_SET_19_(s, x, ...) s x; CPTX_SET_18_(s, __VA_ARGS__)
#define CPTX_SET_20_(s, x, ...) s x; CPTX_SET_19_(s, __VA_ARGS__)
#define CPTX_SET_21_(s, x, ...) s x; CPTX_SET_20_(s, __VA_ARGS__)
#define CPTX_SET_22_(s, x, ...) s x; CPTX_SET_21_(s, __VA_ARGS__)
#define CPTX_SET_23_(s, x, ...) s x; CPTX_SET_22_(s, __VA_ARGS__)
#define CPTX_SET_24_(s, x, ...) s x; CPTX_SET_23_(s, __VA_ARGS__)
#define CPTX_SET_25_(s, x, ...) s x; CPTX_SET_24_(s, __VA_ARGS__)
#define CPTX_SET_26_(s, x, ...) s x; CPTX_SET_25_(s, __VA_ARGS__)
#define CPTX_SET_27_(s, x, ...) s x; CPTX_SET_26_(s, __VA_ARGS__)
#define CPTX_SET_28_(s, x, ...) s x; CPTX_SET_27_(s, __VA_ARGS__)
#define CPTX_SET_29_(s, x, ...) s x; CPTX_SET_28_(s, __VA_ARGS__)
#define CPTX_SET_30_(s, x, ...) s x; CPTX_SET_29_(s, __VA_ARGS__)
#define CPTX_SET_31_(s, x, ...) s x; CPTX_SET_30_(s, __VA_ARGS__)
#define CPTX_SET_32_(s, x, ...) s x; CPTX_SET_31_(s, __VA_ARGS__)
/* clang-format on */

#endif
