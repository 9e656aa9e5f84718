# SPDX-License-Identifier: MIT
"""gen_calls.py OUTPUT HEADERS CPP...: for each function that the public headers (a;b;c) declare, C that calls it with
arguments made by give() of test_misuse.c.  CPP: the preprocessor with the include paths; what it prints is read here."""
import re
import subprocess
import sys

output, headers, cpp = sys.argv[1], sys.argv[2].split(';'), sys.argv[3:]
includes = ''.join('#include <cptx/%s>\n' % h for h in headers if h.endswith('.h') and h != 'cplusplus.h')
text = subprocess.run(cpp + ['-E', '-P', '-x', 'c', '-'], input=includes,
                      stdout=subprocess.PIPE, check=True, universal_newlines=True).stdout
text = ' '.join(text.split())
functions = re.findall(r'__attribute__\(\(visibility\("default"\)\)\) ([^;{]*?) ?(?:__attribute__\(\(format[^;]*)?;', text)
builders = re.findall(r'static inline (?:__attribute__\(\(__always_inline__\)\) )?cptx_val (cptx_\w+)_s_'
                      r'\(cptx_kernel \*k, cptx_site at, const struct \1_ \*s\)', text)
bodies = dict((n, b) for b, n in re.findall(r'typedef struct \w+ \{((?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*)\} (\w+);', text))


def plain(name):
    """Whether a struct has no pointer in it, so that any bits will do."""
    body = bodies[name]
    return '*' not in body and '_fn ' not in body and all(plain(w) for w in set(re.findall(r'\w+', body)) & bodies.keys())


def enums(name):
    """The fields of a struct that are enums."""
    for names in re.findall(r'enum \w+ ([^;{}()]*);', re.sub(r'(union|struct) \{[^{}]*\} \w+;', '', bodies[name])):
        yield from (re.sub(r'\[.*', '', n).strip() for n in names.split(','))


def numbers(name):
    """The fields of a kernel's options that are numbers; .size and lengths of arrays are believed."""
    if not re.search(r'^cptx_(gemm|attention\w*|rows)_opt$', name) or 'runner' in name:
        return
    for names in re.findall(r'(?:uint32_t|uint64_t|int64_t|float|_Bool) ([^;{}()*]*);', bodies[name]):
        yield from (n for n in map(str.strip, names.split(',')) if n not in ('size', 'nparams'))


def split(args):
    """At the commas that are in no parentheses."""
    out, depth = [''], 0
    for c in args:
        depth += {'(': 1, ')': -1}.get(c, 0)
        if c == ',' and not depth:
            out.append('')
        else:
            out[-1] += c
    return [a.strip() for a in out if a.strip() not in ('void', '...')]


def argument(decl):
    """(declaration as a variable, its name, kind, what it is or points to)"""
    hook = re.search(r'\(\*(\w+)\)\(', decl)
    if hook:
        return decl, hook.group(1), 'HOOK', ''
    decl = re.sub(r'(\w+)\[[^]]*\]$', r'*\1', decl)
    type_, name = re.match(r'(.*?)(\w+)$', decl).groups()
    words = [w for w in re.findall(r'\w+', type_) if w not in ('const', 'struct', 'enum')]
    what = words[-1]
    if what == 'cptx_error':
        return decl, name, 'ERROR', what
    if '*' in type_:
        kind = 'TEXT' if type_.replace(' ', '') == 'constchar*' else 'DATA'
        if what in bodies and what != 'cptx_target': # which only the library makes
            kind = 'PLAIN' if plain(what) else 'STRUCT'
        elif what.startswith('cptx_') and not re.search(r'enum %s\b' % what, decl):
            kind = 'OBJECT'
        return decl, name, kind, what
    if what.endswith('_fn'):
        return decl, name, 'HOOK', what
    if what in bodies:
        return decl, name, 'BITS' if plain(what) else 'VALUE', what
    return decl, name, 'ENUM' if 'enum' in type_ else 'NUMBER', what


def result(type_, name, args):
    """How the function says that it failed, if it does."""
    if type_ == 'void':
        return ''
    if name.endswith('_workspace'):
        return 'answered_bytes('
    if type_ == 'cptx_val' and any(a[3] == 'cptx_site' for a in args):
        return 'answered_val('
    return 'answered_%s(' % ('pointer' if type_.endswith('*') else 'struct' if type_ in bodies else 'number')


out, rows, declared = [], [], set()
for f in functions:
    type_, name, args = re.match(r'(.*?)(\w+)\((.*)\)$', f).groups()
    if name in declared:
        continue
    declared.add(name)
    args, type_ = [argument(a) for a in split(args)], type_.strip()
    out.append('static void call_%s(void)\n{' % name)
    for i, (decl, arg, kind, what) in enumerate(args):
        out.append('\t%s;\n\tgive(%d, %s, "%s", &%s, sizeof %s);' % (decl, i, kind, what, arg, arg))
    call, how = '%s(%s)' % (name, ', '.join(a[1] for a in args)), result(type_, name, args)
    out.append('\t%s%s%s;\n}' % (how, call, ')' if how else ''))
    rows.append('\t{ "%s", call_%s, %d, { %s } },' % (name, name, len(args), ', '.join(a[2] for a in args) or '0'))
for name in builders:
    out.append('static void call_%s(void)\n{\n\tcptx_kernel *k;\n\tcptx_site at;\n\tstruct %s_ s = { 0 };' % (name, name))
    out.append('\tgive(0, OBJECT, "cptx_kernel", &k, sizeof k);\n\tgive(1, VALUE, "cptx_site", &at, sizeof at);')
    out.append('\tspoil_call(s.val_, sizeof s.val_, s.mod_, sizeof s.mod_);')
    out.append('\t%s_s_(k, at, &s);\n}' % name)
    rows.append('\t{ "%s", call_%s, 2, { OBJECT, VALUE } },' % (name, name))
if len(functions) < 300 or len(builders) < 200:
    sys.exit('gen_calls.py: %d functions and %d builder calls are found in the headers' % (len(functions), len(builders)))
fields = ['\t{ "%s", offsetof(%s, %s), sizeof(((%s *)0)->%s) },' % (n, n, e, n, e) for n in sorted(bodies) if n.startswith('cptx_') for e in [*enums(n), *numbers(n)]]
if len(fields) < 130:
    sys.exit('gen_calls.py: %d fields that are enums, or numbers of options, are found in the headers' % len(fields))
with open(output, 'w') as f:
    f.write(includes + '#include <stddef.h>\n#ifdef FIELDS_ONLY\nstatic const struct field fields[] = {\n' + '\n'.join(fields) + '\n};\n#else\n' + '\n'.join(out) +
            '\nstatic const struct call calls[] = {\n' + '\n'.join(rows) + '\n};\n#endif\n')
