/**
 * The benchmark: `npm run bench` measures all rows except the long ones, and `npm run bench -- <name> …` some rows. `--json`
 * prints JSON, and `--mib=64` sets the size of the bodies of `bodies`.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { built } from '../support/programs/built.ts';
import { attack } from './measurements/attacks.ts';
import { measureBodies } from './measurements/bodies.ts';
import { measureHttp2 } from './measurements/http2.ts';
import { measureHttp2Attacks } from './measurements/http2-attacks.ts';
import { measureKubernetes } from './measurements/kubernetes.ts';
import { measureLoad } from './measurements/load-configuration.ts';
import { measureLogins } from './measurements/logins.ts';
import { measureMessages } from './measurements/messages.ts';
import { measureRateLimit } from './measurements/ratelimit.ts';
import { measureReload } from './measurements/reload.ts';
import { measureRequests } from './measurements/request-cost.ts';
import { soak } from './measurements/soak.ts';
import { measureStartUp } from './measurements/startup.ts';
import { measureThroughput } from './measurements/throughput.ts';
import { leaveMeasuredCore } from './processes/cores.ts';
import { missingRows, rows } from './rows/request-rows.ts';
import { formatJson, formatTable, type MeasuredRow, type TableRow } from './table.ts';

const requestNames = [...rows, ...missingRows].map(({ name }) => name);
/** `ratelimit` also measures these, to compare requests with and without a label. */
const labelRows = ['chain', 'label', 'label-grpc'];

/** In the order of the table. */
const measurements: Readonly<Record<string, (directory: string) => readonly MeasuredRow[] | Promise<MeasuredRow[]>>> = {
  load: measureLoad,
  reload: measureReload,
  requests: (directory) => measureRequests(requested, directory),
  ratelimit: measureRateLimit,
  logins: measureLogins,
  bodies: (directory) => measureBodies(directory, mebibytes),
  throughput: measureThroughput,
  messages: measureMessages,
  http2: measureHttp2,
  kubernetes: measureKubernetes,
  soak,
  attacks: async (directory) => [...(await attack(directory)), ...(await measureHttp2Attacks(directory))],
  'http2-attacks': measureHttp2Attacks,
};
/** These take from one to fourteen minutes, and run only by name. `attacks` includes `http2-attacks`. */
const longNames = ['soak', 'attacks', 'http2-attacks'];
const known = [...requestNames, ...Object.keys(measurements), 'startup'].filter((name) => name !== 'requests');

const args = process.argv.slice(2);
const mebibytes = Number(args.find((arg) => arg.startsWith('--mib='))?.slice('--mib='.length) ?? 1024);
const named = args.filter((arg) => !/^--(?:json|mib=[1-9]\d*)$/.test(arg));
const unknown = named.find((name) => !known.includes(name));
const chosen = named.length === 0 ? known.filter((name) => !longNames.includes(name)) : named;
const requested = requestNames.filter(
  (name) => chosen.includes(name) || (chosen.includes('ratelimit') && labelRows.includes(name)),
);

if (unknown === undefined) {
  // The servers under test run from the published build.
  built('main.js');
  leaveMeasuredCore();
  const directory = mkdtempSync(join(tmpdir(), 'frontdesk-bench-'));
  try {
    const table = await measure(directory);
    process.stdout.write(args.includes('--json') ? formatJson(table) : formatTable(table));
  } finally {
    rmSync(directory, { recursive: true });
  }
} else {
  process.stderr.write(`bench: unknown row "${unknown}"; choose from ${known.join(', ')}\n`);
  process.exitCode = 1;
}

async function measure(directory: string): Promise<readonly TableRow[]> {
  const table: TableRow[] = [];
  const measureOthers = async () => {
    for (const [name, measureOne] of Object.entries(measurements)) {
      if (!chosen.includes(name) && (name !== 'requests' || requested.length === 0)) continue;
      table.push(...(await measureOne(directory)).map((row) => ({ name, ...row })));
    }
  };
  if (!chosen.includes('startup')) await measureOthers();
  else for (const row of await measureStartUp(directory, measureOthers)) table.push({ name: 'startup', ...row });
  return table;
}
