/* SPDX-License-Identifier: MIT */
/*
 * cptx for C++17: values with operators, and owners of modules, devices, programs and memory.
 *
 *   cptx::module m;
 *   cptx::kernel k = m.kernel("saxpy", { 256 });
 *   cptx::value x = k.param(CPTX_PTR, "x"), n = k.param(CPTX_U32, "n");
 *   cptx::value i = k(cptx_mad(k, k.ctaid_x(), 256, k.tid_x(), .mode = CPTX_LO));
 *   CPTX_IF (k, i < n) { ... }
 *
 * Everything stands on the calls of C, and goes with them: a kernel is passed where they take a cptx_kernel *, a value where
 * they take a cptx_val, and k(v) is a value of a cptx_val.  An operator is one instruction, on operands of the types that the
 * instruction takes: nothing is converted, and a pointer (.u64) and an index (.u32) do not add up.
 *
 *   a + b, a - b, -a      add, sub, neg                   a & b, a | b, a ^ b, ~a    and, or, xor, not
 *   a * b                 mul; of integers mul.lo         a << b, a >> b             shl, shr (arithmetic where a has a sign)
 *   a / b                 div; of .f32 div.rn             a == b, !=, <, <=, >, >=   setp; a predicate
 *   a % b                 rem                             !p                         p read as its complement
 *   a += b and the like   the same into a                 v[i], v.slice(i, n)        elements of a register array
 *
 * One operand may be a number.  a & b and a | b join predicates, too; there are no && and ||, which would look as if they
 * left out their right side.  Copying a value copies the operand, not the register: v.set(x) is the mov.
 *
 * Of two operands that make code the compiler chooses which is made first: give one a name, in front, where two compilers
 * shall print the same bytes.
 *
 * Errors of building stick to the module, at the user's line, as in C; module::check, emit and all that works on devices
 * throw cptx::error.  Owners can be moved, not copied; a program keeps nothing of its device, which must outlive it.
 */
#ifndef CPTX_CPTX_HPP
#define CPTX_CPTX_HPP

#include <cptx/cptx.h>
#include <cptx/device.h>

#include <array>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace cptx
{

/** What cptx refuses: what() is the whole message. */
class error : public std::runtime_error
{
  public:
	explicit error(const cptx_error &e) : std::runtime_error(e.text), code_(e.code), line_(e.line), file_(e.file) {}
	cptx_code code() const noexcept { return code_; }
	/** The line of the user's source, 0 if unknown, and its file. */
	unsigned line() const noexcept { return line_; }
	const std::string &file() const noexcept { return file_; }

  private:
	cptx_code code_;
	unsigned line_;
	std::string file_;
};

/** An error for the last argument of a call of C: (checked() = f(..., e)) is written call(f, ...). */
template <class F, class... A> auto call(F f, A... a)
{
	cptx_error e = {};
	auto result = f(a..., &e);
	if (e.code != CPTX_OK)
		throw error(e);
	return result;
}

class value;

/** An operand of an operator: a value or a number, and the line where it stands. */
struct operand {
	cptx_val v;
	cptx_kernel *k;
	cptx_site at;

	operand(const value &x, const char *file = __builtin_FILE(), unsigned line = static_cast<unsigned>(__builtin_LINE()));
	template <class T, class = std::enable_if_t<std::is_arithmetic<T>::value>>
	operand(T x, const char *file = __builtin_FILE(), unsigned line = static_cast<unsigned>(__builtin_LINE()))
		: v(cptx_v_(number(x))), k(nullptr), at{ file, line }
	{
	}

  private:
	/* A number as a type that cptx_v_ takes. */
	template <class T> static auto number(T x)
	{
		if constexpr (std::is_floating_point<T>::value)
			return static_cast<double>(x);
		else if constexpr (std::is_signed<T>::value)
			return static_cast<long long>(x);
		else
			return static_cast<unsigned long long>(x);
	}
};

/** An operand of a kernel, or the result of a call.  Plain data: the kernel must still be there when it is used. */
class value
{
  public:
	value() : v_(), k_(nullptr) {}
	value(cptx_kernel *k, cptx_val v) : v_(v), k_(k) {}
	operator cptx_val() const { return v_; }
	cptx_kernel *kernel() const { return k_; }
	cptx_type type() const { return static_cast<cptx_type>(v_.type); }
	unsigned count() const { return v_.count; }
	/** Whether it is the result of a call that failed or gives nothing. */
	bool is_none() const { return v_.kind == CPTX_VAL_NONE; }

	value operator[](uint32_t i) const { return { k_, cptx_elem(v_, i) }; }
	value slice(uint32_t first, uint32_t n) const { return { k_, cptx_slice(v_, first, n) }; }
	value offset(int64_t bytes) const { return { k_, cptx_offset(v_, bytes) }; }
	value as(cptx_type type) const { return { k_, cptx_as(v_, type) }; }
	value select(const char *selector) const { return { k_, cptx_select(v_, selector) }; }
	/** Copies x into this register. */
	const value &set(operand x) const
	{
		struct cptx_mov_ s = {};
		s.into = v_, s.a = x.v;
		cptx_mov_s_(k_, x.at, &s);
		return *this;
	}

	/* A call of two operands, the first of which may be a number. */
#define CPTX_HPP_CALL2_(name, more)                                                                                         \
	{                                                                                                                       \
		struct cptx_##name##_ s = {};                                                                                       \
		cptx_kernel *k = a.k ? a.k : b.k;                                                                                   \
		s.a = a.v, s.b = b.v;                                                                                               \
		more;                                                                                                               \
		return { k, cptx_##name##_s_(k, a.at, &s) };                                                                        \
	}
#define CPTX_HPP_BINARY_(op, name, more)                                                                                    \
	friend value operator op(operand a, operand b) CPTX_HPP_CALL2_(name, more)                                              \
	const value &operator op##=(operand b) const                                                                            \
	{                                                                                                                       \
		struct cptx_##name##_ s = {};                                                                                       \
		const operand a(*this);                                                                                             \
		s.a = v_, s.b = b.v, s.into = v_;                                                                                   \
		more;                                                                                                               \
		cptx_##name##_s_(k_, b.at, &s);                                                                                     \
		return *this;                                                                                                       \
	}
#define CPTX_HPP_COMPARE_(op, cmp_) friend value operator op(operand a, operand b) CPTX_HPP_CALL2_(setp, s.cmp = cmp_)
	CPTX_HPP_BINARY_(+, add, (void)a)
	CPTX_HPP_BINARY_(-, sub, (void)a)
	CPTX_HPP_BINARY_(*, mul, s.mode = is_float(a, b) ? 0 : CPTX_LO)
	CPTX_HPP_BINARY_(/, div, s.rnd = is_float(a, b) ? CPTX_RN : 0)
	CPTX_HPP_BINARY_(%, rem, (void)a)
	CPTX_HPP_BINARY_(&, and, s.type = bits(a, b))
	CPTX_HPP_BINARY_(|, or, s.type = bits(a, b))
	CPTX_HPP_BINARY_(^, xor, s.type = bits(a, b))
	CPTX_HPP_BINARY_(<<, shl, (void)a)
	CPTX_HPP_BINARY_(>>, shr, (void)a)
	CPTX_HPP_COMPARE_(==, CPTX_EQ)
	CPTX_HPP_COMPARE_(!=, CPTX_NE)
	CPTX_HPP_COMPARE_(<, CPTX_LT)
	CPTX_HPP_COMPARE_(<=, CPTX_LE)
	CPTX_HPP_COMPARE_(>, CPTX_GT)
	CPTX_HPP_COMPARE_(>=, CPTX_GE)
#undef CPTX_HPP_COMPARE_
#undef CPTX_HPP_BINARY_
#undef CPTX_HPP_CALL2_
	value operator!() const { return { k_, cptx_negated(v_) }; }
	friend value operator-(operand a)
	{
		struct cptx_neg_ s = {};
		s.a = a.v;
		return { a.k, cptx_neg_s_(a.k, a.at, &s) };
	}
	friend value operator~(operand a)
	{
		struct cptx_not_ s = {};
		s.a = a.v, s.type = bits(a, a);
		return { a.k, cptx_not_s_(a.k, a.at, &s) };
	}

  private:
	cptx_val v_;
	cptx_kernel *k_;

	static const cptx_val &typed(const operand &a, const operand &b) { return a.k ? a.v : b.v; }
	static bool is_float(const operand &a, const operand &b)
	{
		switch (static_cast<cptx_type>(typed(a, b).type)) {
		case CPTX_F16:
		case CPTX_F16X2:
		case CPTX_BF16:
		case CPTX_BF16X2:
		case CPTX_F32:
		case CPTX_F32X2:
		case CPTX_F64: return true;
		default: return false;
		}
	}
	/* The plain bits that logic works on. */
	static uint16_t bits(const operand &a, const operand &b)
	{
		switch (cptx_type_bits(static_cast<cptx_type>(typed(a, b).type))) {
		case 1: return CPTX_PRED;
		case 16: return CPTX_B16;
		case 32: return CPTX_B32;
		default: return CPTX_B64;
		}
	}
};

inline operand::operand(const value &x, const char *file, unsigned line) : v(x), k(x.kernel()), at{ file, line } {}

/** Up to three dimensions: { 256 }, { 32, 4 }. */
using dims = std::vector<uint32_t>;
/** Fills in a field of options; what `from` has not is 0. */
inline void set_dims(uint32_t (&to)[3], const dims &from)
{
	for (size_t i = 0; i < 3; i++)
		to[i] = i < from.size() ? from[i] : 0;
}

/** The line of the caller, as a default argument. */
struct site {
	cptx_site at;
	site(const char *file = __builtin_FILE(), unsigned line = static_cast<unsigned>(__builtin_LINE())) : at{ file, line } {}
};

/** The body of a kernel or device function while it is built; a copy is the same body. */
class kernel
{
  public:
	explicit kernel(cptx_kernel *k) : k_(k) {}
	operator cptx_kernel *() const { return k_; }
	/** A result of a call of C as a value: k(cptx_ld(k, p, .space = CPTX_GLOBAL, .type = CPTX_F32)). */
	value operator()(cptx_val v) const { return { k_, v }; }

	value param(cptx_type type, const char *name, site s = {}) const { return { k_, cptx_param_(k_, s.at, type, name) }; }
	value reg(cptx_type type, site s = {}) const { return { k_, cptx_regs_(k_, s.at, type, 1) }; }
	value regs(cptx_type type, uint32_t n, site s = {}) const { return { k_, cptx_regs_(k_, s.at, type, n) }; }
	value var(cptx_type type, operand init) const { return { k_, cptx_var_(k_, init.at, type, init.v) }; }
	value shared(cptx_type type, uint32_t n, uint32_t align = 16, const char *name = nullptr, site s = {}) const
	{
		return { k_, cptx_shared_(k_, s.at, type, n, align, name) };
	}
	value shared_dyn(uint32_t bytes, uint32_t align, const char *name, site s = {}) const
	{
		return { k_, cptx_shared_dyn_(k_, s.at, bytes, align, name) };
	}
	value sreg(cptx_sreg r, site s = {}) const { return { k_, cptx_sreg_(k_, s.at, r) }; }
	value tid_x(site s = {}) const { return sreg(CPTX_SREG_TID_X, s); }
	value tid_y(site s = {}) const { return sreg(CPTX_SREG_TID_Y, s); }
	value ctaid_x(site s = {}) const { return sreg(CPTX_SREG_CTAID_X, s); }
	value ctaid_y(site s = {}) const { return sreg(CPTX_SREG_CTAID_Y, s); }
	value ntid_x(site s = {}) const { return sreg(CPTX_SREG_NTID_X, s); }
	value laneid(site s = {}) const { return sreg(CPTX_SREG_LANEID, s); }

  private:
	cptx_kernel *k_;
};

namespace detail
{
template <auto f> struct closer {
	template <class T> void operator()(T *x) const { f(x); }
};
template <class T, auto f> using owner = std::unique_ptr<T, closer<f>>;
} // namespace detail

/** A module: kernels, device functions and variables. */
class module
{
  public:
	module() : m_(cptx_module_new(nullptr))
	{
		if (!m_)
			throw std::bad_alloc();
	}
	/** Reads PTX text. */
	static module parse(const std::string &text, const char *name = "ptx")
	{
		cptx_parse_opt o = {};
		o.size = CPTX_OPT_SIZE(cptx_parse_opt), o.name = name;
		module m(cptx_parse(text.data(), text.size(), &o));
		m.check();
		return m;
	}
	operator cptx_module *() const { return m_.get(); }
	/** Opens a kernel; opt has what block does not say, and may be left out. */
	cptx::kernel kernel(const char *name, const dims &block = {}, const cptx_kernel_opt *opt = nullptr, site s = {}) const
	{
		cptx_kernel_opt o = {};
		if (opt)
			o = *opt;
		o.size = CPTX_OPT_SIZE(cptx_kernel_opt);
		if (!block.empty())
			set_dims(o.block, block);
		return cptx::kernel(cptx_kernel_begin_(m_.get(), s.at, name, &o));
	}
	cptx::kernel func(const char *name, cptx_type ret = CPTX_TYPE_NONE, site s = {}) const
	{
		return cptx::kernel(cptx_func_begin_(m_.get(), s.at, name, ret));
	}
	/** Throws the first error of building, if there is one. */
	void check() const
	{
		if (const cptx_error *e = cptx_module_error(m_.get()))
			throw error(*e);
	}
	/** PTX text for a target. */
	std::string emit(const char *target, const cptx_emit_opt *opt = nullptr) const
	{
		detail::owner<cptx_ptx, cptx_ptx_destroy> ptx(call(cptx_emit, m_.get(), target, opt));
		return { cptx_ptx_text(ptx.get()), cptx_ptx_size(ptx.get()) };
	}

  private:
	explicit module(cptx_module *m) : m_(m)
	{
		if (!m_)
			throw std::bad_alloc();
	}
	detail::owner<cptx_module, cptx_module_destroy> m_;
};

/** A GPU or an emulator. */
class device
{
  public:
	explicit device(const char *name) : d_(call(cptx_device_open, name)) {}
	operator cptx_device *() const { return d_.get(); }
	const cptx_device_info &info() const { return *cptx_device_get_info(d_.get()); }
	void synchronize() const { call(cptx_device_synchronize, d_.get()); }

  private:
	detail::owner<cptx_device, cptx_device_close> d_;
};

/** A stream of a device. */
class stream
{
  public:
	explicit stream(const device &d) : d_(d), s_(call(cptx_stream_new, static_cast<cptx_device *>(d))) {}
	operator cptx_stream *() const { return s_.get(); }
	void synchronize() const { call(cptx_stream_synchronize, d_, s_.get()); }

  private:
	cptx_device *d_;
	detail::owner<cptx_stream, cptx_stream_destroy> s_;
};

/** n elements of memory of a device, not set; frees them. */
template <class T> class buffer
{
  public:
	buffer(const device &d, size_t n) : d_(d), n_(n), at_(n ? call(cptx_mem_alloc, d_, n * sizeof(T)) : 0) {}
	buffer(const device &d, const std::vector<T> &from) : buffer(d, from.size()) { write(from); }
	buffer(buffer &&b) noexcept : d_(b.d_), n_(b.n_), at_(std::exchange(b.at_, 0)) {}
	buffer &operator=(buffer &&b) noexcept
	{
		std::swap(d_, b.d_), std::swap(n_, b.n_), std::swap(at_, b.at_);
		return *this;
	}
	~buffer()
	{
		if (at_)
			cptx_mem_free(d_, at_);
	}
	/** The address on the device, as an argument of a launch. */
	uint64_t address() const { return at_; }
	size_t size() const { return n_; }
	void write(const std::vector<T> &from)
	{
		if (from.size() != n_)
			throw std::invalid_argument("cptx::buffer::write: another number of elements");
		if (n_)
			call(cptx_mem_write, d_, at_, static_cast<const void *>(from.data()), n_ * sizeof(T));
	}
	std::vector<T> read() const
	{
		std::vector<T> to(n_);
		if (n_)
			call(cptx_mem_read, d_, static_cast<void *>(to.data()), at_, n_ * sizeof(T));
		return to;
	}

  private:
	cptx_device *d_;
	size_t n_;
	uint64_t at_;
};

/** A module that is loaded on a device. */
class program
{
  public:
	program(const device &d, const module &m, const cptx_load_opt *opt = nullptr, site s = {})
		: p_(call(cptx_device_load_, s.at, static_cast<cptx_device *>(d), static_cast<cptx_module *>(m), opt))
	{
	}
	operator cptx_program *() const { return p_.get(); }
	std::string log() const { return cptx_program_log(p_.get()); }
	/** Starts a kernel (nullptr: the only one) with these arguments, numbers or addresses of buffers. */
	template <class... A> void launch(const char *name, const dims &grid, A... arguments) const
	{
		launch_on(nullptr, name, grid, arguments...);
	}
	/** The same, as work of a stream. */
	template <class... A> void launch_on(cptx_stream *s, const char *name, const dims &grid, A... arguments) const
	{
		const std::array<cptx_arg, sizeof...(A)> given{ { cptx_arg_(arguments)... } };
		cptx_launch_opt o = {};
		o.size = CPTX_OPT_SIZE(cptx_launch_opt);
		set_dims(o.grid, grid);
		o.args = given.data(), o.nargs = given.size();
		cptx_error e = {};
		cptx_launch_once(p_.get(), name, &o, s, &e);
		if (e.code != CPTX_OK)
			throw error(e);
	}

  private:
	detail::owner<cptx_program, cptx_program_destroy> p_;
};

} // namespace cptx

#endif
