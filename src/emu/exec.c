/* Which function decodes an instruction, or why none does: exec.def as tables. */
#include "emu/exec.h"

emu_decode_fn emu_decode_of(unsigned opcode)
{
	switch (opcode) {
#define LEFT_OUT(op, why)
#define EXEC(op, decoder)                                                                                                   \
	case CPTX_OP_##op:                                                                                                      \
		return decoder;
#include "emu/exec.def"
#undef EXEC
#undef LEFT_OUT
	default: return NULL;
	}
}

const char *emu_left_out(unsigned opcode)
{
	switch (opcode) {
#define EXEC(op, decoder)
#define LEFT_OUT(op, why)                                                                                                   \
	case CPTX_OP_##op:                                                                                                      \
		return why;
#include "emu/exec.def"
#undef EXEC
#undef LEFT_OUT
	default: return NULL;
	}
}
