/* Which function decodes an instruction: exec.def as a table. */
#include "emu/exec.h"

emu_decode_fn emu_decode_of(unsigned opcode)
{
	switch (opcode) {
#define EXEC(op, decoder)                                                                                                   \
	case CPTX_OP_##op:                                                                                                      \
		return decoder;
#include "emu/exec.def"
#undef EXEC
	default: return NULL;
	}
}
