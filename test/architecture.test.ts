/** The house's walls: who may import whom, and what every file owes its reader. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const src = fileURLToPath(new URL('../src', import.meta.url));

/** What a module may import; a name after `type:` may be imported for its types alone. */
const mayImport: Readonly<Record<string, readonly string[]>> = {
  http: [],
  config: [],
  query: ['http'],
  rest: ['http', 'query'],
  storage: ['query'],
  auth: ['http', 'config'],
  ratelimit: ['config'],
  'services/booking': ['http', 'query', 'rest', 'storage'],
  'services/hotel': ['http', 'query', 'rest', 'storage', 'services/booking'],
  'services/car': ['http', 'query', 'rest', 'storage', 'services/booking'],
  api: ['http', 'query', 'rest', 'storage', 'api/v1', 'api/v2'],
  'api/v1': ['http', 'query', 'rest', 'storage'],
  'api/v2': ['http', 'query', 'rest', 'storage'],
  routing: ['config', 'http'],
  proxy: ['http', 'routing', 'type:config'],
  gateway: ['config', 'http', 'routing', 'proxy', 'type:auth', 'type:ratelimit'],
  tracing: ['http'],
  diag: ['config', 'http', 'type:gateway', 'type:ratelimit'],
  explain: ['config', 'http', 'routing', 'proxy', 'gateway', 'type:auth', 'type:ratelimit'],
  metrics: ['http', 'type:gateway', 'type:proxy', 'type:ratelimit', 'type:config'],
  server: [
    ...[
      'api',
      'auth',
      'config',
      'diag',
      'explain',
      'gateway',
      'http',
      'metrics',
      'proxy',
      'query',
      'ratelimit',
      'rest',
    ],
    ...['routing', 'services/booking', 'services/car', 'services/hotel', 'storage', 'tracing'],
  ],
  cli: ['auth', 'config', 'diag', 'explain', 'gateway', 'http', 'server'],
};

const files = readdirSync(src, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts'))
  .map((name) => name.replaceAll('\\', '/'));

const roots = ['index.ts', 'main.ts', 'node-version.ts'];

/** The nearest folder with an index.ts: folders below it are parts of the same module. */
function moduleOf(file: string): string {
  if (roots.includes(file)) return file;
  let folder = dirname(file);
  while (folder.includes('/') && !files.includes(`${folder}/index.ts`)) folder = dirname(folder);
  return folder;
}

interface Import {
  readonly from: string;
  readonly typeOnly: boolean;
  /** Loaded when it is needed, and not with the file. */
  readonly late: boolean;
}

function importsOf(file: string): Import[] {
  const text = readFileSync(join(src, file), 'utf8');
  const statements = text.matchAll(
    /^(?:import|export)\s+(type\s)?[^;'"]*?from\s+['"]([^'"]+)['"]|^import\s+['"]([^'"]+)['"]/gm,
  );
  const dynamic = text.matchAll(/\bimport\(\s*['"]([^'"]+)['"]\s*\)/g);
  return [
    ...[...statements].map((m) => ({
      from: m[2] ?? m[3] ?? '',
      typeOnly: m[1] !== undefined,
      late: false,
    })),
    ...[...dynamic].map((m) => ({ from: m[1] ?? '', typeOnly: false, late: true })),
  ];
}

/** Relative to src for a file of the same module; as it is written for the rest. */
function targetOf(file: string, { from }: Import): string {
  return from.startsWith('.') ? relative(src, join(src, dirname(file), from)).replaceAll('\\', '/') : from;
}

/** Our own files that a file imports, relative to src. */
function filesImportedBy(file: string, { types }: { types: boolean }): string[] {
  return importsOf(file)
    .filter(({ typeOnly }) => types || !typeOnly)
    .flatMap((one) => {
      if (one.from.startsWith('#')) return [`${one.from.slice(1)}/index.ts`];
      return one.from.startsWith('.') ? [targetOf(file, one)] : [];
    });
}

describe('architecture', () => {
  it('has a row in the table for every module', () => {
    const modules = new Set(files.filter((file) => !roots.includes(file)).map(moduleOf));
    assert.deepEqual(
      [...modules].filter((name) => !(name in mayImport)),
      [],
    );
  });

  it('lets a module import only what the table allows', () => {
    const isAllowed = (file: string, { from, typeOnly }: Import) => {
      const allowed = mayImport[moduleOf(file)];
      const name = from.slice(1);
      return allowed === undefined || allowed.includes(name) || (typeOnly && allowed.includes(`type:${name}`));
    };
    const broken = files.flatMap((file) =>
      importsOf(file)
        .filter((one) => one.from.startsWith('#') && !isAllowed(file, one))
        .map(({ from }) => `${file}: ${from}`),
    );
    assert.deepEqual(broken, []);
  });

  it('keeps relative imports inside the module', () => {
    const broken = files.flatMap((file) =>
      importsOf(file)
        .filter(({ from }) => from.startsWith('.'))
        .filter((one) => moduleOf(targetOf(file, one)) !== moduleOf(file) && !roots.includes(file))
        .map(({ from }) => `${file}: ${from}`),
    );
    assert.deepEqual(broken, []);
  });

  it('has no cycle between files of a module, nor between modules', () => {
    const done = new Set<string>();
    const visit = (file: string, path: readonly string[]): void => {
      assert.ok(!path.includes(file), `cycle: ${[...path.slice(path.indexOf(file)), file].join(' -> ')}`);
      if (done.has(file)) return;
      for (const next of filesImportedBy(file, { types: false })) visit(next, [...path, file]);
      done.add(file);
    };
    for (const file of files) visit(file, []);
  });

  it('loads late what not every process has a use for', () => {
    const libraries = ['@grpc/grpc-js', '@grpc/proto-loader', '@grpc/reflection', 'grpc-health-check'];
    const late = [...libraries, 'undici', 'redis', 'pg', 'chokidar', 'prom-client', '#server', 'cli/explain.ts'];
    const mayServe = ['index.ts', 'cli/explain.ts'];
    const early = files.flatMap((file) =>
      importsOf(file)
        .filter((one) => late.includes(targetOf(file, one)) && !one.late && !one.typeOnly && !mayServe.includes(file))
        .map(({ from }) => `${file}: ${from}`),
    );
    assert.deepEqual(early, []);
  });

  it('opens every file with one sentence', () => {
    const broken = files.filter((file) => !/^(?:#!.*\n)?\/\*\* ?\S/.test(readFileSync(join(src, file), 'utf8')));
    assert.deepEqual(broken, []);
  });

  it('keeps files within 400 lines', () => {
    const long = files.filter((file) => readFileSync(join(src, file), 'utf8').split('\n').length > 401);
    assert.deepEqual(long, []);
  });

  it('touches process only in the command line and where its use of the machine is read, and the disk only where the house says so', () => {
    const code = (file: string) =>
      readFileSync(join(src, file), 'utf8').replace(/\/\*[\s\S]*?\*\/|(?<=\s)\/\/.*$/gm, '');
    const uses = (pattern: RegExp) => files.filter((file) => pattern.test(code(file)));
    assert.deepEqual(
      uses(/(?<![\w.'-])process\.|from 'node:process'/).filter(
        (file) => !roots.includes(file) && moduleOf(file) !== 'cli' && file !== 'metrics/process-families.ts',
      ),
      [],
    );
    const disk = uses(/from 'node:fs(?:\/promises)?'/);
    assert.deepEqual(
      // The assets are the style and the script of the diagnostics page, which lie beside it; the other reads proto/.
      disk.filter(
        (file) =>
          !['config', 'storage'].includes(moduleOf(file)) &&
          !['diag/assets.ts', 'ratelimit/reflection.ts'].includes(file),
      ),
      [],
    );
  });

  it('has no folder for leftovers', () => {
    const leftovers = files.filter((file) =>
      /(?:^|\/)(?:utils?|common|helpers?|types|interfaces|middlewares?)\//.test(file),
    );
    assert.deepEqual(leftovers, []);
  });

  it('reaches every file from index.ts or main.ts', () => {
    const seen = new Set<string>();
    const visit = (file: string): void => {
      if (seen.has(file)) return;
      seen.add(file);
      for (const next of filesImportedBy(file, { types: true })) visit(next);
    };
    for (const root of ['index.ts', 'main.ts']) visit(root);
    assert.deepEqual(
      files.filter((file) => !seen.has(file)),
      [],
    );
  });

  it('exports no default and keeps no state in a module', () => {
    const text = (file: string) => readFileSync(join(src, file), 'utf8');
    assert.deepEqual(
      files.filter((file) => /^export default|^(?:export )?let /m.test(text(file))),
      [],
    );
  });
});
