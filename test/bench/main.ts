/** The benchmark: `npm run bench` measures everything, `npm run bench -- <name> …` only some rows, `load`, `ratelimit`, `startup` or `soak`. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root } from './child.ts';
import { measureLoad } from './load-configuration.ts';
import { measureRows } from './measure.ts';
import { measureRateLimit } from './ratelimit.ts';
import { rows } from './rows.ts';
import { soak } from './soak.ts';
import { measureReady, startIdle } from './startup.ts';
import { formatFigures, formatLoad, formatRateLimit, formatSoak, formatStartUp } from './table.ts';

const names = [...rows.map(({ name }) => name), 'load', 'ratelimit', 'startup'];
/** The labelled requests and their like without a label. */
const labelRows = ['chain', 'label', 'label-grpc'];
const asked = process.argv.slice(2);
/** Takes a minute and measures nothing: it runs when it is asked for. */
const soakName = 'soak';
const stranger = asked.find((name) => name !== soakName && !names.includes(name));

if (stranger === undefined) await run(asked.length === 0 ? names : asked);
else fail(`there is no row "${stranger}"; choose from ${[...names, soakName].join(', ')}`);

async function run(chosen: readonly string[]): Promise<void> {
  build();
  const directory = mkdtempSync(join(tmpdir(), 'frontdesk-bench-'));
  try {
    const isStartUpAsked = chosen.includes('startup');
    const readyMs = isStartUpAsked ? await measureReady(directory) : Number.NaN;
    if (chosen.includes('load')) process.stdout.write(formatLoad(measureLoad(directory)));
    const idle = isStartUpAsked ? await startIdle(directory) : undefined;
    // Bare Koa always runs too: only ratios travel from one machine to another.
    const isRateLimitAsked = chosen.includes('ratelimit');
    const isAsked = (name: string) => chosen.includes(name) || (isRateLimitAsked && labelRows.includes(name));
    const measured = rows.filter(({ name }) => isAsked(name) || name === 'koa');
    if (measured.length > 1 || chosen.includes('koa')) {
      process.stdout.write(formatFigures(await measureRows(measured, directory)));
    }
    if (isRateLimitAsked) process.stdout.write(formatRateLimit(await measureRateLimit(directory)));
    if (chosen.includes(soakName)) process.stdout.write(formatSoak(await soak(directory)));
    if (idle !== undefined) process.stdout.write(formatStartUp(readyMs, await idle.rssBytes()));
  } finally {
    rmSync(directory, { recursive: true });
  }
}

/** What is measured is what is published. */
function build(): void {
  const { status } = spawnSync('npm', ['run', '--silent', 'build'], { cwd: root, stdio: 'inherit' });
  if (status !== 0) fail('the build failed');
}

function fail(message: string): never {
  process.stderr.write(`bench: ${message}\n`);
  process.exit(1);
}
