#!/usr/bin/env python3
"""Plants faults in src/, one at a time, and says which suite notices each.

    tests/scripts/mutations.py FOLDER N SEED

The tree is copied to FOLDER and built with the baseline kernels only. N faults are planted at random
places there; those that do not compile, or compile to the same library, do not count. The suites that
look at the fault's directory run first, then the others from the fastest to the slowest, one on each
processor, until one fails or hangs. Root runs them as nobody, for a fault may delete files."""
import glob, hashlib, math, os, random, re, resource, shutil, signal, subprocess, sys, time

folder, wanted, seed = os.path.abspath(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
tree, scratch = (os.path.join(folder, name) for name in ('tree', 'scratch'))
rng = random.Random(seed)

# Suites that look at a directory, the first to notice first.
LOOKS_AT = {
    'core': 'core memory threads functions',
    'kernels': 'kernels norm_ops conv transformer recurrent losses numbers',
    'group': 'group parallel',
    'tape': 'tape derivatives memory',
    'ops': 'ops functions norm_ops losses operands conv transformer nulls numbers',
    'nn': 'nn networks recurrent transformer golden',
    'norms': 'norm_ops norm_settings norm_masks nn',
    'optim': 'optim golden parallel',
    'check': 'check',
    'io': 'io files numpy training golden',
    'plot': 'plot files',
}

# ---- The operators: each gives the forms that a line of code may become --------------------------


def each(pattern, replacement):
    """One form for each place where the pattern stands."""
    def apply(line):
        for m in re.finditer(pattern, line):
            yield line[:m.start()] + (replacement(m) if callable(replacement) else m.expand(replacement)) + line[m.end():]
    return apply


def table(pairs):
    """Each word or sign becomes its partner."""
    pattern = '|'.join(r'\b%s\b' % k if k[0].isalpha() else '(?<= )%s(?= )' % re.escape(k) for k in pairs)
    return each(pattern, lambda m: pairs[m.group()])


def whole(pattern, replacement):
    """The line is one statement of this form."""
    return lambda line: [line[:len(line) - len(line.lstrip())] + re.sub(pattern, replacement, line.strip())] \
        if re.fullmatch(pattern, line.strip()) else []


def both(*operators):
    return lambda line: (form for operator in operators for form in operator(line))


WORD = r'[a-z_][\w.>\[\]-]*'
OPERATORS = {
    'drop a statement': whole(r'(?!return|break|continue|case|default|else|if|for|while|do\b)'
                              r'(\w[\w.>\[\]-]*(\(.*\)|( [-+*/|&]?= .*|\+\+|--)));', ';'),
    'flip a comparison': table({'<': '>=', '>': '<=', '<=': '>', '>=': '<', '==': '!=', '!=': '=='}),
    'off by one': both(table({'<': '<=', '<=': '<', '>': '>=', '>=': '>'}), each(r' [-+] 1\b', ''),
                       each(r'(?<=for \()(int|int64_t) (\w+) = 0', r'\1 \2 = 1')),
    'another operator': both(table({'+': '-', '-': '+', '/': '*'}), each(r'(?<=\w) \* (?=\w)', ' + ')),
    'swap operands': both(each(r'\b(%s) ([-/]) (%s)' % (WORD, WORD), r'\3 \2 \1'),
                          each(r'(?<=\()(%s), (%s)(?=[,)])' % (WORD, WORD), r'\2, \1')),
    'drop a negation': both(each(r'!(?=[a-z(])', ''), each(r'(?<=[=(?:,] )-(?=\w)', ''),
                            each(r'(?<=return )-(?=\w)', '')),
    'wrong accumulate': both(each(r' [-+]= ', ' = '), each(r'\baccumulate \?', '!accumulate ?'),
                             each(r'\badd \?', '!add ?')),
    'wrong axis': both(table({'rows': 'cols', 'inner': 'outer', 'outer': 'inner', 'height': 'width', 'width': 'height'}),
                       each(r'\[0\]', '[1]'), each(r'\[1\]', '[0]'), each(r'rank - 1', 'rank - 2')),
    'drop a check': both(whole(r'if \(.*\) (return|goto|continue|break)\b.*;', ';'),
                         each(r'(?<=\()[^()]+ && ', ''), each(r'(?<=\()[^()]+ \|\| ', '')),
    'and for or': table({'&&': '||', '||': '&&'}),
    'another constant': both(each(r'(?<![\w.])([02-9])(?![\w.])', lambda m: str(int(m.group()) + 1)),
                             each(r'\b\d+\.\d+\b', lambda m: str(2 * float(m.group()))),
                             table({'true': 'false', 'false': 'true'})),
    'swap the branches': each(r'\? (%s|[\d.]+) : (%s|[\d.]+)' % (WORD, WORD), r'? \2 : \1'),
    'another result': both(whole(r'return NG_E\w+;', 'return NG_OK;'), whole(r'return ([a-z]\w*);', r'return 0;'),
                           whole(r'return (.* [=<>!]=? .*);', r'return !(\1);')),
}


def places():
    """Every line inside a function of src/, with the forms that each operator makes of it."""
    found = {name: [] for name in OPERATORS}
    for path in sorted(glob.glob('src/*/*.[ch]') + glob.glob('src/*/*.inc')):
        if path.startswith('src/mpi/') or re.match('src/kernels/isa_(?!baseline)', path):
            continue
        depth, comment, directive = 0, False, False
        for number, line in enumerate(open(path).read().split('\n')):
            code = re.sub(r'/\*.*?\*/', '', line)
            inside = depth > 0 and not comment and not directive
            if '*/' in code:
                comment, code, inside = False, code.split('*/')[1], False
            if '/*' in code:
                comment, code = True, code.split('/*')[0]
            if code.startswith('#') or directive:
                directive = line.endswith('\\')
                continue
            if comment and not code.strip():
                continue
            if inside and '"' not in code and not re.match(r'\s*(static )?const \w+ \w+\[', code):
                for name, operator in OPERATORS.items():
                    for form in operator(code.rstrip()):
                        found[name].append((path, number, form))
            depth += code.count('{') - code.count('}')
    return found


# ---- Building and running ------------------------------------------------------------------------

library, runner = 'build/release/libnormgrad.a', 'build/release/tests/runner'


def build():
    """Whether the tree builds, and a digest of the library."""
    made = subprocess.run(['make', '-s', 'ISAS=baseline', 'CFLAGS=-g0', runner], capture_output=True, text=True,
                          env={**os.environ, 'MAKEFLAGS': '', 'MAKELEVEL': '0'})
    if made.returncode:
        return None, made.stderr
    return hashlib.sha256(open(library, 'rb').read()).hexdigest(), ''


def confined(limit):
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, 1 << 30))
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))


class Run:
    """One suite in one process, which ends at the first assertion that fails (CK_FORK=no), or at a limit of seconds of a
    processor, or of ten times as many by the clock."""

    def __init__(self, program, suite, limit):
        env = {**os.environ, 'CK_RUN_SUITE': suite, 'CK_FORK': 'no', 'STOP_AT_FAILURE': '1', 'TMPDIR': scratch, 'HOME': scratch}
        nobody = {'user': 65534, 'group': 65534, 'extra_groups': []} if os.geteuid() == 0 else {}
        self.suite, self.ends = suite, time.time() + 10 * limit
        self.process = subprocess.Popen([program], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, preexec_fn=lambda: confined(limit), **nobody)

    def result(self):
        """True: it passed; False: it failed or hangs; None: it runs."""
        code = self.process.poll()
        return code == 0 if code is not None else False if time.time() > self.ends else None

    def end(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()


def first_to_fail(suites, seconds):
    """The suite that fails first, or None. One that takes 4 times its usual seconds of a processor, and 5, hangs."""
    waiting, running = list(suites), []
    try:
        while waiting or running:
            while waiting and len(running) < len(os.sched_getaffinity(0)):
                suite = waiting.pop(0)
                running.append(Run(runner, suite, 5 + math.ceil(4 * seconds[suite])))
            time.sleep(0.02)
            for run in list(running):
                result = run.result()
                if result is False:
                    return run.suite
                if result:
                    running.remove(run)
                    run.end()
        return None
    finally:
        for run in running:
            run.end()


def main():
    shutil.rmtree(tree, ignore_errors=True)
    shutil.copytree('.', tree, ignore=shutil.ignore_patterns('build', '.git', 'plots'))
    os.makedirs(scratch, exist_ok=True)
    os.chmod(scratch, 0o777)
    os.chdir(tree)
    original, said = build()
    if not original:
        sys.exit('mutations: the tree does not build:\n' + said)
    seconds = {}  # of a processor, for each suite without a fault
    for path in sorted(glob.glob('tests/*/test_*.c')):
        suite, start = re.sub(r'.*test_|\.c', '', path), os.times().children_user
        if first_to_fail([suite], {suite: 30}) is None:
            seconds[suite] = os.times().children_user - start
        else:
            print('%s fails without a fault and is left out' % suite, flush=True)

    def verdict(path):
        """The suite that notices the fault."""
        first = [s for s in LOOKS_AT.get(path.split('/')[1], '').split() if s in seconds]
        return first_to_fail(first + sorted(set(seconds) - set(first), key=seconds.get), seconds)

    found, noticed, survivors, counted, skipped = places(), {}, [], 0, 0
    while counted < wanted:
        name = rng.choice([n for n in found if found[n]])
        path, number, form = found[name].pop(rng.randrange(len(found[name])))
        start, text = time.time(), open(path).read()
        lines = text.split('\n')
        before, lines[number] = lines[number], form
        open(path, 'w').write('\n'.join(lines))
        if build()[0] in (None, original):
            skipped += 1
        else:
            counted += 1
            suite, where = verdict(path), '%s:%d' % (path, number + 1)
            print('%-13s %-20s %s (%.0f s)' % (suite or 'SURVIVES', name, where, time.time() - start), flush=True)
            if suite:
                noticed.setdefault(suite, []).append(where)
            else:
                survivors.append((name, where, before, form))
                print('-%s\n+%s' % (before, form), flush=True)
        open(path, 'w').write(text)

    print('\n%d of %d faults were noticed (%d more did not compile or changed nothing):' % (counted - len(survivors), counted, skipped))
    for suite in sorted(noticed, key=lambda s: -len(noticed[s])):
        print('%6d  %s' % (len(noticed[suite]), suite))
    for name, where, before, form in survivors:
        print('\n%s: %s\n-%s\n+%s' % (where, name, before, form))


signal.signal(signal.SIGTERM, lambda *_: sys.exit(1)) # which ends the suites that run
main()
