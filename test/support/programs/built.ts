/** Returns paths in `dist`, and builds it first if a source is newer. For tests that start frontdesk as a process. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const cache = join(root, 'node_modules/.cache');
const lock = join(cache, 'building');

/** Call it while the test file loads, before any of mocha's time-outs starts. */
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

/** The last step of a build makes main.js executable and sets its time to the start of the build. */
function isStale(): boolean {
  const main = statSync(join(root, 'dist/main.js'), { throwIfNoEntry: false });
  return main === undefined || (main.mode & 0o111) === 0 || main.mtimeMs < newestSource();
}

function newestSource(): number {
  const sources = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' }).map((name) => `src/${name}`);
  return Math.max(
    ...['package.json', 'tsconfig.json', '.ci/build.js', ...sources].map((name) => statSync(join(root, name)).mtimeMs),
  );
}

/** Runs the `build` script of package.json without npm, which takes longer to start than the compiler. */
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

/** Lets one process build at a time, because mocha runs test files in several processes. */
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
