/** Checks the architecture: which module may import which, and the sizes of files, folders and functions. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseSync } from 'oxc-parser';

/** This module knows no other, and every module may import it. */
const bottom = 'foundation';
/** The other modules that each module may import. `type:` allows only types. */
const mayImport: Readonly<Record<string, readonly string[]>> = {
  [bottom]: [],
  http: [],
  config: ['auth/password-hash', 'ratelimit/limit', 'ratelimit/redis-url'],
  query: ['http'],
  rest: ['http', 'query'],
  auth: ['auth/ext-authz', 'auth/password-hash', 'http', 'config'],
  'auth/ext-authz': [],
  'auth/password-hash': [],
  ratelimit: ['ratelimit/limit', 'ratelimit/redis-url', 'http', 'config'],
  'ratelimit/limit': [],
  'ratelimit/redis-url': [],
  'ratelimit/http': ['ratelimit', 'ratelimit/limit', 'http', 'config'],
  routing: ['config', 'http'],
  proxy: ['http', 'routing', 'type:config'],
  gateway: ['auth/ext-authz', 'config', 'http', 'ratelimit', 'ratelimit/limit', 'routing', 'proxy', 'type:auth'],
  explain: ['config', 'http', 'ratelimit/limit', 'routing', 'proxy', 'gateway', 'type:auth', 'type:ratelimit'],
  diag: ['config', 'http', 'ratelimit/limit', 'type:auth', 'type:gateway', 'type:kubernetes', 'type:ratelimit'],
  metrics: ['http', 'type:auth', 'type:config', 'type:gateway', 'type:kubernetes', 'type:proxy', 'type:ratelimit'],
  tracing: ['http'],
  kubernetes: ['config'],
  travel: ['config', 'http', 'query', 'rest'],
  'server/product': ['config', 'travel'],
  cli: [
    'auth',
    'config',
    'diag',
    'explain',
    'http',
    'ratelimit',
    'ratelimit/redis-url',
    'routing',
    'server',
    'server/product',
    'travel',
  ],
};
/** The parts of `travel` that are isolated, each with the other parts that it may import. */
const mayImportInTravel: Readonly<Record<string, readonly string[]>> = {
  'travel/storage': [],
  'travel/booking': ['travel/storage'],
  'travel/hotel': ['travel/booking', 'travel/storage'],
  'travel/car': ['travel/booking', 'travel/storage'],
  'travel/messages/v1': ['travel/storage'],
  'travel/messages/v2': ['travel/storage'],
  'travel/messages': ['travel/messages/v1', 'travel/messages/v2', 'travel/storage'],
};
/** This module may import every module except `cli`. */
const compositionRoot = 'server';

/** Libraries that must be loaded on demand with `import()`, so that a process starts fast. */
const onDemandLibraries = [
  '@grpc/grpc-js',
  '@grpc/proto-loader',
  '@grpc/reflection',
  'grpc-health-check',
  'undici',
  'redis',
  'pg',
  'chokidar',
  'prom-client',
  'node:tls',
  'node:https',
  'node:http2',
  'jose',
];
/** Our own files that must be loaded on demand. They may import such libraries. */
const onDemandFiles = [
  'server/index.ts',
  'server/threads/main-thread.ts',
  'server/threads/thread.ts',
  'kubernetes/index.ts',
  'travel/travel.ts',
  'travel/storage/sqlite.ts',
  'cli/check.ts',
  'cli/explain.ts',
  'cli/init.ts',
  'cli/limits.ts',
  'cli/split.ts',
  'cli/users.ts',
  'ratelimit/grpc/channel.ts',
];
/** The libraries that each part of the package may load when it is imported alone, besides those of Node. */
const librariesOfExports: Readonly<Record<string, readonly string[]>> = {
  'exports/api.ts': ['koa', 'koa-compose', 'koa-mount', 'negotiator', 'zod'],
  'exports/auth.ts': ['koa', 'koa-compose', 'negotiator'],
  'exports/ratelimit.ts': ['koa-compose', 'negotiator'],
};
const mayLoadServerEarly = ['index.ts', 'cli/dry-start.ts'];

/** The modules and files that may use `process`. */
const mayReadProcess = ['main.ts', 'node-version.ts', 'cli', 'metrics/process.ts', 'server/kubernetes/environment.ts'];
/** The modules and files that may use the file system: http/html reads scripts and styles, grpc reads proto/. */
const mayReadFiles = [
  'foundation/folders.ts',
  'config',
  'travel/storage/sqlite.ts',
  'travel/storage/sqlite-faults.ts',
  'cli/init.ts',
  'cli/log/output.ts',
  'http/html/html.ts',
  'kubernetes/api/find-connection.ts',
  'kubernetes/api/kubeconfig.ts',
  'ratelimit/grpc/services.ts',
];

/** Entry points of threads, which no file imports. */
const threadEntries = ['config/watch/read-thread.ts', 'cli/thread.ts'];

const linesOfFileMax = 450;
const linesOfFunctionMax = 50;
const filesInFolderMax = 16;

const src = fileURLToPath(new URL('../src', import.meta.url));
const files = filesIn(src);
const texts = new Map(files.map((file) => [file, readFileSync(join(src, file), 'utf8')]));
const importsOf = new Map(files.map((file) => [file, parseImports(file)]));
const moduleNames = new Set(files.map(moduleOf));
const moduleImports = arrowsBetweenModules();

const root = join(src, '..');
/** The files and folders at the top of the repository, besides dot files and what `.gitignore` lists. */
const topLevel = [
  'Dockerfile',
  'CHANGELOG.md',
  'LICENSE',
  'SECURITY.md',
  'README.md',
  'config',
  'package-lock.json',
  'package.json',
  'proto',
  'src',
  'test',
  'tsconfig.json',
];

describe('architecture', () => {
  it('has no files at the top of the repository but those that a reader expects there', () => {
    const ignored = readFileSync(join(root, '.gitignore'), 'utf8').split(/\/?\n/);
    const isExpected = (name: string) => /^\.|\.(?:log|tgz)$/.test(name) || [...topLevel, ...ignored].includes(name);
    failIfAny(
      readdirSync(root).filter((name) => !isExpected(name)),
      (name) => `${name} is at the top of the repository: move it into the folder of its subject.`,
    );
  });

  it('names the modules in tsconfig.json as in package.json, so that every tool can follow the imports', () => {
    const read = (name: string) => JSON.parse(readFileSync(join(root, name), 'utf8'));
    assert.deepEqual(read('tsconfig.json').compilerOptions.paths, {
      '#*': [read('package.json').imports['#*']['frontdesk-source']],
    });
  });

  it('has a row in the table of imports for every module', () => {
    const isKnown = (name: string) => name in mayImport || name === compositionRoot || name.endsWith('.ts');
    failIfAny(
      [...moduleNames].filter((name) => !isKnown(name)),
      (name) =>
        `src/${name} has no row in mayImport (test/architecture.test.ts): add one that says what it may import.`,
    );
  });

  it('lets a module import only what the table allows', () => {
    failIfAny(
      allImports().filter(
        ({ file, from, typeOnly }) => from.startsWith('#') && !isAllowed(file, from.slice(1), typeOnly),
      ),
      ({ file, from, typeOnly }) =>
        `src/${file} may not import ${typeOnly ? 'types' : 'values'} of ${from}: let the caller pass in what it needs, or move the code.`,
    );
  });

  it('isolates the services of travel, and the versions of its API, from each other', () => {
    const isAllowedPart = (part: string, target: string | undefined) =>
      target === undefined || target === part || mayImportInTravel[part]?.includes(target);
    failIfAny(
      allImports().filter(({ file, from }) => {
        const part = partOfTravel(file);
        return part !== undefined && !isAllowedPart(part, partOfTravel(resolveImport(file, from)));
      }),
      ({ file, from }) => `src/${file} may not import ${from}: let the caller pass in what it needs, or move the code.`,
    );
  });

  it('has no word of travel outside of it, the composition root and the command line', () => {
    const words = /hotel|booking|\bcars?\b|sold-out|too-many-(?:holds|units)|DATABASE_|databaseUrl/i;
    // The fields of a Mapping have examples in the documentation.
    const mayName = (file: string) => /^(?:travel|server|cli)\/|^config\/records\/mapping-fields\.ts$/.test(file);
    failIfAny(
      filesIn(src, /\.(?:ts|js|css)$/).filter(
        (file) => !mayName(file) && words.test(readFileSync(join(src, file), 'utf8')),
      ),
      (file) =>
        `src/${file} names something of travel: use a neutral example such as orders, or let the caller pass in the name.`,
    );
  });

  it('is drawn in src/README.md as the modules import each other; UPDATE_PICTURE=1 draws it again', () => {
    const page = join(src, 'README.md');
    const text = readFileSync(page, 'utf8');
    const [drawn] = /(?<=^```mermaid\n).*?(?=\n```$)/ms.exec(text) ?? [''];
    if (process.env['UPDATE_PICTURE'] === '1') writeFileSync(page, text.replace(drawn, picture));
    else assert.equal(drawn, picture());
  });

  it('keeps relative imports inside the module', () => {
    failIfAny(
      allImports().filter(
        ({ file, from }) =>
          from.startsWith('.') && !isTopLevel(file) && moduleOf(resolveImport(file, from)) !== moduleOf(file),
      ),
      ({ file, from }) => `src/${file} imports ${from} of another module: import that module by its name with #.`,
    );
  });

  it('has no import cycles, not even of types', () => {
    const isInCycle = ({ file, from }: Pick<FileImport, 'file' | 'from'>) =>
      reachedFrom([resolveImport(file, from)]).has(file);
    failIfAny(
      allImports().filter(({ file, from }) => texts.has(resolveImport(file, from)) && isInCycle({ file, from })),
      ({ file, from }) => `src/${file} imports ${from}, which imports it back: move the shared code into another file.`,
    );
  });

  it('loads libraries on demand if not every process needs them', () => {
    const isLate = (file: string, from: string) =>
      (onDemandLibraries.includes(from) && !onDemandFiles.includes(file)) ||
      (onDemandFiles.includes(resolveImport(file, from)) && !mayLoadServerEarly.includes(file));
    failIfAny(
      allImports().filter(({ file, from, late, typeOnly }) => !late && !typeOnly && isLate(file, from)),
      ({ file, from }) => `src/${file} loads ${from} at the start: use \`await import('${from}')\` where it is needed.`,
    );
  });

  it('keeps the parts that can be imported alone free of libraries that not every app needs', () => {
    const isLight = (root: string, from: string) =>
      librariesOfExports[root]?.includes(from) || (from.startsWith('node:') && !onDemandLibraries.includes(from));
    const roots = files.filter((file) => dirname(file) === 'exports');
    assert.deepEqual(roots, Object.keys(librariesOfExports));
    failIfAny(
      roots.flatMap((root) =>
        [...loadedWith(root)]
          .flatMap((file) => importsOf.get(file) ?? [])
          .filter(({ file, from, late, typeOnly }) => !late && !typeOnly && !texts.has(resolveImport(file, from)))
          .filter(({ from }) => !isLight(root, from))
          .map((found) => ({ root, ...found })),
      ),
      ({ root, file, from }) =>
        `src/${root} loads ${from}, which src/${file} imports: use \`await import('${from}')\`, or move the code to a module that ${root} does not need.`,
    );
  });

  it('imports only types from node:http', () => {
    failIfAny(
      allImports().filter(
        ({ file, from, typeOnly }) => from === 'node:http' && !typeOnly && file !== 'http/server/node-http.ts',
      ),
      ({ file }) => `src/${file} imports node:http: write \`import type\`, and use nodeHttp of #http for values.`,
    );
  });

  it('opens every file with one sentence, in src and in test', () => {
    const all = ['src', 'test'].flatMap((folder) => filesIn(join(root, folder)).map((file) => `${folder}/${file}`));
    failIfAny(
      all.filter((file) => !/^(?:#!.*\n)?\/\*\*\s+\S/.test(readFileSync(join(root, file), 'utf8'))),
      (file) => `${file} does not begin with /** … */: describe in one sentence what it is for.`,
    );
  });

  it(`keeps files within ${linesOfFileMax} lines`, () => {
    failIfAny(
      files.filter((file) => textOf(file).split('\n').length > linesOfFileMax + 1),
      (file) => `src/${file} has more than ${linesOfFileMax} lines: split it by subject.`,
    );
  });

  it(`keeps folders within ${filesInFolderMax} files`, () => {
    const filesDirectlyIn = (folder: string) => files.filter((file) => dirname(file) === folder).length;
    failIfAny(
      [...new Set(files.map(dirname))].filter((folder) => filesDirectlyIn(folder) > filesInFolderMax),
      (folder) =>
        `src/${folder} has ${filesDirectlyIn(folder)} files: make sub-folders, or join files that are one subject.`,
    );
  });

  it(`keeps functions within ${linesOfFunctionMax} lines, not counting functions inside them`, () => {
    failIfAny(files.flatMap(longFunctions), (place) => `${place}: split the function.`);
  });

  it('uses the process and the file system only where the tables allow it', () => {
    const code = (file: string) => textOf(file).replace(/\/\*[\s\S]*?\*\/|(?<=\s)\/\/.*$/gm, '');
    const uses = (pattern: RegExp) => files.filter((file) => pattern.test(code(file)));
    const usersBeside = (allowed: readonly string[], pattern: RegExp) =>
      uses(pattern).filter((file) => ![file, moduleOf(file)].some((name) => allowed.includes(name)));
    failIfAny(
      usersBeside(mayReadProcess, /(?<![\w.'/-])process\.|from 'node:process'/),
      (file) => `src/${file} uses process: take what it needs as a parameter from main.ts.`,
    );
    failIfAny(
      usersBeside(mayReadFiles, /from 'node:fs(?:\/promises)?'/),
      (file) => `src/${file} uses node:fs: let #config read the file and pass in its content.`,
    );
  });

  it('has no catch-all folders', () => {
    failIfAny(
      files.filter((file) => /(?:^|\/)(?:utils?|common|helpers?|types|interfaces|middlewares?)\//.test(file)),
      (file) =>
        `src/${file} is in a catch-all folder: move it next to the code that uses it, or name the folder by its subject.`,
    );
  });

  it('reaches every file from an entry point of the package, main.ts or the entry point of a thread', () => {
    const reached = reachedFrom(['index.ts', ...Object.keys(librariesOfExports), 'main.ts', ...threadEntries]);
    failIfAny(
      files.filter((file) => !reached.has(file)),
      (file) => `src/${file} is imported by no file: delete it.`,
    );
  });

  it('has no default exports and no module-level state', () => {
    failIfAny(
      files.filter((file) => /^export default|^(?:export )?let /m.test(textOf(file))),
      (file) =>
        `src/${file} has a default export or a \`let\` outside of functions: export by name, keep state in a createX().`,
    );
  });
});

interface FileImport {
  readonly file: string;
  readonly from: string;
  readonly typeOnly: boolean;
  /** Imported with `import()`. */
  readonly late: boolean;
}

/** Returns the paths of the TypeScript files in a folder and below it, relative to the folder. */
function filesIn(folder: string, names = /\.ts$/): readonly string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => names.test(name))
    .map((name) => name.replaceAll('\\', '/'))
    .sort();
}

function failIfAny<Fault>(faults: readonly Fault[], sentence: (fault: Fault) => string): void {
  if (faults.length === 0) return;
  const error = new Error(`\n${faults.map(sentence).join('\n')}`);
  error.stack = error.message;
  throw error;
}

/** The nearest folder with an index.ts. A file directly in src or in src/exports is its own module. */
function moduleOf(file: string): string {
  if (isTopLevel(file)) return file;
  let folder = dirname(file);
  while (folder.includes('/') && !files.includes(`${folder}/index.ts`)) folder = dirname(folder);
  return folder;
}

/** The first row of `mayImportInTravel` that is the file or a folder above it. */
function partOfTravel(file: string): string | undefined {
  return Object.keys(mayImportInTravel).find((part) => file === `${part}.ts` || file.startsWith(`${part}/`));
}

/** The entry points of the package and of the command line, which are modules of their own. */
function isTopLevel(file: string): boolean {
  return !file.includes('/') || dirname(file) === 'exports';
}

function isAllowed(file: string, name: string, typeOnly: boolean): boolean {
  if (name === bottom) return true;
  const allowed = mayImport[moduleOf(file)];
  if (allowed === undefined) return isTopLevel(file) || name !== 'cli';
  return allowed.includes(name) || (typeOnly && allowed.includes(`type:${name}`));
}

function textOf(file: string): string {
  return texts.get(file) ?? '';
}

function allImports(): FileImport[] {
  return [...importsOf.values()].flat();
}

/** Our own files that a file imports, including imports of types. */
function ownImports(file: string): string[] {
  return (importsOf.get(file) ?? []).map(({ from }) => resolveImport(file, from)).filter((name) => texts.has(name));
}

/** Returns the path in src for our own files, and the name for libraries. */
function resolveImport(file: string, from: string): string {
  if (from.startsWith('#')) return `${from.slice(1)}/index.ts`;
  return from.startsWith('.') ? join(dirname(file), from).replaceAll('\\', '/') : from;
}

/** For each module, the modules that it imports, with the arrow that shows whether it imports more than types. */
function arrowsBetweenModules(): ReadonlyMap<string, ReadonlyMap<string, string>> {
  const imports = new Map([...moduleNames].toSorted().map((name) => [name, new Map<string, string>()]));
  for (const { file, from, typeOnly } of allImports()) {
    const target = resolveImport(file, from);
    if (!texts.has(target) || moduleOf(target) === moduleOf(file)) continue;
    const arrows = imports.get(moduleOf(file));
    if (arrows?.get(moduleOf(target)) !== '-->') arrows?.set(moduleOf(target), typeOnly ? '-.->' : '-->');
  }
  return imports;
}

function parseImports(file: string): FileImport[] {
  const text = textOf(file);
  const statements = text.matchAll(
    /^(?:import|export)\s+(type\s)?[^;'"]*?from\s+['"]([^'"]+)['"]|^import\s+['"]([^'"]+)['"]/gm,
  );
  const dynamic = text.matchAll(/\bimport\(\s*['"]([^'"]+)['"]\s*\)/g);
  return [
    ...[...statements].map((m) => ({ file, from: m[2] ?? m[3] ?? '', typeOnly: m[1] !== undefined, late: false })),
    ...[...dynamic].map((m) => ({ file, from: m[1] ?? '', typeOnly: false, late: true })),
  ];
}

/** Draws the modules in Mermaid's language, top-down. Omits an arrow if other arrows lead to its target. */
function picture(): string {
  const belowOf = new Map([...moduleImports.keys()].map((name) => [name, modulesBelow(name)]));
  const isBelow = (target: string, name: string) => belowOf.get(name)?.has(target) === true;
  const lines = [...moduleImports]
    .toSorted(([a], [b]) => Number(belowOf.get(b)?.size) - Number(belowOf.get(a)?.size))
    .flatMap(([name, imported]) =>
      [...imported]
        .filter(([target]) => ![...imported.keys()].some((other) => isBelow(target, other)))
        .map(([target, arrow]) => `  ${name} ${arrow} ${target}`),
    );
  return ['flowchart TD', ...lines].join('\n');
}

/** The modules that a module imports, directly or not. */
function modulesBelow(name: string): ReadonlySet<string> {
  const below = new Set(moduleImports.get(name)?.keys());
  // The set grows while the loop visits it.
  for (const found of below) for (const next of moduleImports.get(found)?.keys() ?? []) below.add(next);
  return below;
}

/** The given files, and all files that they import, directly or not. */
function reachedFrom(roots: readonly string[]): ReadonlySet<string> {
  const reached = new Set(roots);
  // The set grows while the loop visits it.
  for (const file of reached) for (const next of ownImports(file)) reached.add(next);
  return reached;
}

/** The file, and our own files that are loaded with it. */
function loadedWith(root: string): ReadonlySet<string> {
  const loaded = new Set([root]);
  for (const file of loaded)
    for (const { from, late, typeOnly } of importsOf.get(file) ?? [])
      if (!late && !typeOnly && texts.has(resolveImport(file, from))) loaded.add(resolveImport(file, from));
  return loaded;
}

/** Describes the functions that are too long: `src/file.ts:12 has 60 lines of its own`. */
function longFunctions(file: string): string[] {
  const text = textOf(file);
  const long: string[] = [];
  const linesBetween = (start: number, end: number) => text.slice(start, end).split('\n').length;
  /** Returns how many lines of the node belong to functions. */
  const visit = (node: unknown): number => {
    if (typeof node !== 'object' || node === null) return 0;
    const inner = Object.values(node).reduce((sum: number, child) => sum + visit(child), 0);
    const { type, start, end, body } = node as { type?: string; start: number; end: number; body?: unknown };
    if (!type?.includes('Function') || !body) return inner;
    const lines = linesBetween(start, end);
    if (lines - inner > linesOfFunctionMax)
      long.push(`src/${file}:${linesBetween(0, start)} has ${lines - inner} lines of its own`);
    return lines - 1;
  };
  visit(parseSync(file, text).program);
  return long;
}
