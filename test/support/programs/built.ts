/** Gives paths in `dist`, building it first when a source is newer; tests that start frontdesk as a process import this. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const cache = join(root, 'node_modules/.cache');
const lock = join(cache, 'building');

/** Builds while the test file loads, when no time-out of mocha runs yet. */
export function built(file: string): string {
  if (isStale()) {
    mkdirSync(cache, { recursive: true });
    acquireLock();
    try {
      if (isStale()) build();
    } finally {
      rmSync(lock);
    }
  }
  return join(root, 'dist', file);
}

/** A build ends with making main.js executable, and gives it the time when it began. */
function isStale(): boolean {
  const main = statSync(join(root, 'dist/main.js'), { throwIfNoEntry: false });
  return main === undefined || (main.mode & 0o111) === 0 || main.mtimeMs < newestSource();
}

function newestSource(): number {
  const sources = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' }).map((name) => `src/${name}`);
  return Math.max(
    ...['package.json', 'tsconfig.json', 'build.js', ...sources].map((name) => statSync(join(root, name)).mtimeMs),
  );
}

/** Runs the script `build` of package.json without npm, which takes longer to start than the compiler. */
function build(): void {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const PATH = [join(root, 'node_modules/.bin'), process.env['PATH']].join(delimiter);
  const { status } = spawnSync(scripts.build, {
    cwd: root,
    shell: true,
    stdio: 'inherit',
    env: { ...process.env, PATH },
  });
  if (status !== 0) throw new Error('the build failed');
}

/** One process builds at a time: mocha runs test files in several. */
function acquireLock(): void {
  for (;;) {
    try {
      writeFileSync(lock, `${process.pid}`, { flag: 'wx' });
      return;
    } catch {
      if (!holderIsAlive()) rmSync(lock, { force: true });
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50);
    }
  }
}

function holderIsAlive(): boolean {
  try {
    return process.kill(Number(readFileSync(lock, 'utf8')), 0);
  } catch {
    return false;
  }
}
