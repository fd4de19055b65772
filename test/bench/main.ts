/**
 * The benchmark: `npm run bench` measures all rows except the long ones, and `npm run bench -- <name> …` some rows. `--json`
 * prints JSON, and `--mib=64` sets the size of the bodies of `throughput`.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { built } from '../support/programs/built.ts';
import { attack } from './measurements/attacks.ts';
import { measureLoad } from './measurements/load-configuration.ts';
import { measureLogins } from './measurements/logins.ts';
import { measureMessages } from './measurements/messages.ts';
import { measureRateLimit } from './measurements/ratelimit.ts';
import { measureReload } from './measurements/reload.ts';
import { measureRows } from './measurements/request-cost.ts';
import { soak } from './measurements/soak.ts';
import { measureMappings, measureReady, startIdle } from './measurements/startup.ts';
import { measureThroughput } from './measurements/throughput.ts';
import { missingRows, rows } from './rows/request-rows.ts';
import {
  attackRows,
  formatJson,
  formatTable,
  loadRows,
  loginRows,
  messageRows,
  missingTableRows,
  rateLimitRows,
  reloadRows,
  requestRows,
  soakRows,
  startUpRows,
  type TableRow,
  throughputRows,
  withPeers,
} from './table.ts';

const requestNames = [...rows, ...missingRows].map(({ name }) => name);
const defaultNames = [...requestNames, 'load', 'logins', 'messages', 'ratelimit', 'reload', 'startup', 'throughput'];
/** These take a minute and twelve minutes, and run only by name. */
const longNames = ['soak', 'attacks'];
/** `ratelimit` also measures these, to compare requests with and without a label. */
const labelRows = ['chain', 'label', 'label-grpc'];

const args = process.argv.slice(2);
const mebibytes = Number(args.find((arg) => arg.startsWith('--mib='))?.slice('--mib='.length) ?? 1024);
const chosen = args.filter((arg) => !/^--(?:json|mib=[1-9]\d*)$/.test(arg));
const unknown = chosen.find((name) => ![...defaultNames, ...longNames].includes(name));

/** Measurements that run one after the other, after those of requests. */
const separate: Readonly<Record<string, (directory: string) => Promise<TableRow[]>>> = {
  logins: async (directory) => loginRows(await measureLogins(directory)),
  throughput: async (directory) => throughputRows(await measureThroughput(directory, mebibytes)),
  messages: async (directory) => messageRows(await measureMessages(directory)),
  soak: async (directory) => soakRows(await soak(directory)),
  attacks: async (directory) => attackRows(await attack(directory)),
};

if (unknown === undefined) {
  const table = await measure(chosen.length === 0 ? defaultNames : chosen);
  process.stdout.write(args.includes('--json') ? formatJson(table) : formatTable(table));
} else {
  process.stderr.write(`bench: unknown row "${unknown}"; choose from ${[...defaultNames, ...longNames].join(', ')}\n`);
  process.exitCode = 1;
}

async function measure(chosen: readonly string[]): Promise<TableRow[]> {
  // The servers under test run from the published build.
  built('main.js');
  const directory = mkdtempSync(join(tmpdir(), 'frontdesk-bench-'));
  const table: TableRow[] = [];
  try {
    const started = chosen.includes('startup') && {
      readyMs: await measureReady(directory),
      mappingBytes: await measureMappings(directory),
    };
    if (chosen.includes('load')) table.push(...loadRows(measureLoad(directory)));
    if (chosen.includes('reload')) table.push(...reloadRows(await measureReload(directory)));
    // This process idles while the other measurements run.
    const idle = started && { ...started, ...(await startIdle(directory)) };
    const withRateLimit = chosen.includes('ratelimit');
    const requested = requestNames.filter(
      (name) => chosen.includes(name) || (withRateLimit && labelRows.includes(name)),
    );
    // Includes the peers of the rows, because only ratios carry over to other machines.
    const requests = rows.filter(({ name }) => requested.length > 0 && withPeers(requested).includes(name));
    if (requests.length > 0) table.push(...requestRows(await measureRows(requests, directory)));
    table.push(...missingTableRows(missingRows.filter(({ name }) => requested.includes(name))));
    if (withRateLimit) table.push(...rateLimitRows(await measureRateLimit(directory)));
    for (const [name, measureSeparately] of Object.entries(separate))
      if (chosen.includes(name)) table.push(...(await measureSeparately(directory)));
    if (idle) table.push(...startUpRows({ ...idle, idleRssBytes: await idle.rssBytes() }));
  } finally {
    rmSync(directory, { recursive: true });
  }
  return table;
}
