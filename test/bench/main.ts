/** The benchmark: `npm run bench` measures everything, `npm run bench -- <name> …` only some rows, `ratelimit` or `startup`. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root } from './child.ts';
import { measureRows } from './measure.ts';
import { measureRateLimit } from './ratelimit.ts';
import { rows } from './servers.ts';
import { measureReady, startIdle } from './startup.ts';
import { formatFigures, formatRateLimit, formatStartUp } from './table.ts';

const names = [...rows.map(({ name }) => name), 'ratelimit', 'startup'];
/** The labelled requests and their like without a label. */
const labelRows = ['chain', 'label', 'label-grpc'];
const asked = process.argv.slice(2);
const stranger = asked.find((name) => !names.includes(name));

if (stranger === undefined) await run(asked.length === 0 ? names : asked);
else fail(`there is no row "${stranger}"; choose from ${names.join(', ')}`);

async function run(chosen: readonly string[]): Promise<void> {
  build();
  const directory = mkdtempSync(join(tmpdir(), 'frontdesk-bench-'));
  try {
    const isStartUpAsked = chosen.includes('startup');
    const readyMs = isStartUpAsked ? await measureReady(directory) : Number.NaN;
    const idle = isStartUpAsked ? await startIdle(directory) : undefined;
    // Bare Koa always runs too: only ratios travel from one machine to another.
    const isRateLimitAsked = chosen.includes('ratelimit');
    const isAsked = (name: string) => chosen.includes(name) || (isRateLimitAsked && labelRows.includes(name));
    const measured = rows.filter(({ name }) => isAsked(name) || name === 'koa');
    if (measured.length > 1 || chosen.includes('koa')) {
      process.stdout.write(formatFigures(await measureRows(measured, directory)));
    }
    if (isRateLimitAsked) process.stdout.write(formatRateLimit(await measureRateLimit(directory)));
    if (idle !== undefined) process.stdout.write(formatStartUp(readyMs, await idle.rssBytes()));
  } finally {
    rmSync(directory, { recursive: true });
  }
}

/** What is measured is what is published. */
function build(): void {
  const { status } = spawnSync(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', 'src'], {
    cwd: root,
    stdio: 'inherit',
  });
  if (status !== 0) fail('the build failed');
}

function fail(message: string): never {
  process.stderr.write(`bench: ${message}\n`);
  process.exit(1);
}
