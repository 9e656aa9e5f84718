/* SPDX-License-Identifier: MIT */
/* The traces of bench_jit as LLVM IR, built by LLVM's C interface and printed as PTX by its NVPTX back end in this process.
 */
#include "jit_llvm.h"

#include "clock.h"

#include <llvm-c/Core.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void die(const char *why)
{
	fprintf(stderr, "bench_jit: LLVM: %s\n", why);
	exit(1);
}

typedef struct maker {
	LLVMContextRef c;
	LLVMModuleRef m;
	LLVMBuilderRef b;
	LLVMTypeRef i1, i32, i64, f32, at; /* at: a pointer to global f32 */
	LLVMValueRef fma, ex2;
	LLVMTypeRef fma_type, ex2_type;
	LLVMValueRef *v;
} maker;

static LLVMValueRef intrinsic(maker *k, const char *name, LLVMTypeRef type)
{
	LLVMValueRef f = LLVMGetNamedFunction(k->m, name);

	return f ? f : LLVMAddFunction(k->m, name, type);
}

static void begin(maker *k, const trace *t)
{
	LLVMTypeRef parameters[2], f32s[3];

	k->c = LLVMContextCreate();
	k->m = LLVMModuleCreateWithNameInContext("trace", k->c);
	k->b = LLVMCreateBuilderInContext(k->c);
	k->i1 = LLVMInt1TypeInContext(k->c), k->i32 = LLVMInt32TypeInContext(k->c), k->i64 = LLVMInt64TypeInContext(k->c);
	k->f32 = LLVMFloatTypeInContext(k->c), k->at = LLVMPointerType(k->f32, 1);
	f32s[0] = f32s[1] = f32s[2] = k->f32;
	k->fma_type = LLVMFunctionType(k->f32, f32s, 3, 0), k->ex2_type = LLVMFunctionType(k->f32, f32s, 1, 0);
	k->fma = intrinsic(k, "llvm.fma.f32", k->fma_type);
	k->ex2 = intrinsic(k, "llvm.nvvm.ex2.approx.ftz.f", k->ex2_type);
	parameters[0] = k->at, parameters[1] = k->i32;
	LLVMValueRef f = LLVMAddFunction(k->m, "trace", LLVMFunctionType(LLVMVoidTypeInContext(k->c), parameters, 2, 0));
	LLVMAddAttributeAtIndex(f, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
	                        LLVMCreateStringAttribute(k->c, "denormal-fp-math-f32", 20, "preserve-sign", 13));
	LLVMMetadataRef note[] = { LLVMValueAsMetadata(f), LLVMMDStringInContext2(k->c, "kernel", 6),
		                       LLVMValueAsMetadata(LLVMConstInt(k->i32, 1, 0)) };
	LLVMAddNamedMetadataOperand(k->m, "nvvm.annotations", LLVMMetadataAsValue(k->c, LLVMMDNodeInContext2(k->c, note, 3)));
	LLVMPositionBuilderAtEnd(k->b, LLVMAppendBasicBlockInContext(k->c, f, "entry"));
	k->v = calloc(t->n, sizeof *k->v);
	k->v[VAR_POINTER] = LLVMBuildPtrToInt(k->b, LLVMGetParam(f, 0), k->i64, "");
	k->v[VAR_SIZE] = LLVMGetParam(f, 1);
	LLVMTypeRef tid = LLVMFunctionType(k->i32, NULL, 0, 0);
	k->v[VAR_TID] = LLVMBuildCall2(k->b, tid, intrinsic(k, "llvm.nvvm.read.ptx.sreg.tid.x", tid), NULL, 0, "");
}

static LLVMValueRef call(maker *k, const trace_step *s)
{
	LLVMBuilderRef b = k->b;
	bool number = s->op == U32_ADD_IMM || s->op == F32_IMM;
	LLVMValueRef x = k->v[s->a], y = number ? NULL : k->v[s->b],
				 z = s->op == F32_SELECT || s->op == U32_MAD || s->op == F32_FMA ? k->v[s->c] : NULL;
	LLVMValueRef xyz[] = { x, y, z };

	switch ((enum trace_op)s->op) {
	case U32_ADD: return LLVMBuildAdd(b, x, y, "");
	case U32_ADD_IMM: return LLVMBuildAdd(b, x, LLVMConstInt(k->i32, s->b, 0), "");
	case U32_AND: return LLVMBuildAnd(b, x, y, "");
	case U32_MAD: return LLVMBuildAdd(b, LLVMBuildMul(b, x, y, ""), z, "");
	case U64_ELEMENT: return LLVMBuildMul(b, LLVMBuildZExt(b, x, k->i64, ""), LLVMConstInt(k->i64, 4, 0), "");
	case U64_ADDRESS: return LLVMBuildAdd(b, x, k->v[VAR_POINTER], "");
	case F32_LOAD: return LLVMBuildLoad2(b, k->f32, LLVMBuildIntToPtr(b, x, k->at, ""), "");
	case F32_CVT: return LLVMBuildUIToFP(b, x, k->f32, "");
	case F32_IMM: return LLVMConstReal(k->f32, s->b);
	case F32_ADD: return LLVMBuildFAdd(b, x, y, "");
	case F32_MUL: return LLVMBuildFMul(b, x, y, "");
	case F32_FMA: return LLVMBuildCall2(b, k->fma_type, k->fma, xyz, 3, "");
	case F32_EX2: return LLVMBuildCall2(b, k->ex2_type, k->ex2, xyz, 1, "");
	case F32_SELECT: return LLVMBuildSelect(b, z, x, y, "");
	case PRED_LESS: return LLVMBuildFCmp(b, LLVMRealOLT, x, y, "");
	case STORE: return LLVMBuildStore(b, y, LLVMBuildIntToPtr(b, x, k->at, ""));
	case TRACE_OPS: break;
	}
	return NULL;
}

static LLVMTargetMachineRef machine(void)
{
	LLVMTargetRef target;
	char *why = NULL;

	LLVMInitializeNVPTXTargetInfo(), LLVMInitializeNVPTXTarget(), LLVMInitializeNVPTXTargetMC();
	LLVMInitializeNVPTXAsmPrinter();
	if (LLVMGetTargetFromTriple("nvptx64-nvidia-cuda", &target, &why))
		die(why);
	return LLVMCreateTargetMachine(target, "nvptx64-nvidia-cuda", "sm_80", "+ptx70", LLVMCodeGenLevelDefault,
	                               LLVMRelocDefault, LLVMCodeModelDefault);
}

double llvm_print(const trace *t, size_t *lines)
{
	static LLVMTargetMachineRef to;
	LLVMMemoryBufferRef text = NULL;
	char *why = NULL;
	maker k;

	to = to ? to : machine();
	double t0 = now_ns();
	begin(&k, t);
	LLVMSetTarget(k.m, "nvptx64-nvidia-cuda");
	for (size_t i = TRACE_FIRST; i < t->n; i++)
		k.v[i] = call(&k, &t->step[i]);
	LLVMBuildRetVoid(k.b);
	if (LLVMTargetMachineEmitToMemoryBuffer(to, k.m, LLVMAssemblyFile, &why, &text))
		die(why);
	double time = now_ns() - t0;
	*lines = 0;
	for (const char *p = LLVMGetBufferStart(text), *end = p + LLVMGetBufferSize(text); p < end; p++)
		*lines += *p == '\n';
	LLVMDisposeMemoryBuffer(text);
	LLVMDisposeBuilder(k.b);
	LLVMDisposeModule(k.m);
	LLVMContextDispose(k.c);
	free(k.v);
	return time;
}
