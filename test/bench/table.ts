/** Formats the figures as one table, each with its peer, the ratio to it, and the aim. */
import type { AttackFigures } from './attacks.ts';
import type { LoadFigures } from './load-configuration.ts';
import type { LoginFigures } from './logins.ts';
import type { Figures } from './measure.ts';
import type { MessageFigures } from './messages.ts';
import type { RateLimitFigures } from './ratelimit.ts';
import type { ReloadFigures } from './reload.ts';
import type { SoakFigures } from './soak.ts';
import type { StartUpFigures } from './startup.ts';
import type { ThroughputFigures } from './throughput.ts';

export interface TableRow {
  readonly name: string;
  readonly what: string;
  /** Undefined if it was not measured. */
  readonly figure: number | undefined;
  /** The reason why it was not measured. */
  readonly missing?: string;
  readonly unit: string;
  /** The row that it is compared with. */
  readonly peer?: string;
  /** The figure divided by the peer's. */
  readonly ratio?: number;
  readonly aim?: Aim;
}

/** All given conditions must hold. `moreMax` bounds the difference from the peer's figure, in the row's unit. */
export interface Aim {
  readonly ratioMax?: number;
  readonly ratioMin?: number;
  readonly figureMax?: number;
  readonly moreMax?: number;
}

const requestUnit = 'CPU us/request';

/** Peers and aims of requests, by row. The default is bare Koa as peer and no aim. */
const requestAims: Readonly<Record<string, { readonly peer?: string; readonly aim?: Aim }>> = {
  chain: { aim: { ratioMax: 1.8 } },
  'chain-log': { aim: { ratioMax: 2.3 } },
  label: { peer: 'chain', aim: { moreMax: 5 } },
  'label-grpc': { peer: 'chain', aim: { moreMax: 70 } },
  envoy: { peer: 'label', aim: { ratioMin: 5 } },
  'full-headers': { peer: 'chain' },
  'full-body': { peer: 'chain' },
  'create-booking': { peer: 'insert', aim: { ratioMax: 2, figureMax: 300 } },
  'create-booking-pg': { peer: 'create-booking' },
  'list-bookings': { peer: 'select', aim: { ratioMax: 2 } },
  ...Object.fromEntries(
    ['1k', '64k', '1m', 'post'].flatMap((exchange) => [
      [`proxy-${exchange}`, { peer: `http-proxy-${exchange}`, aim: { ratioMax: 1 } }],
      [`proxy-auth-${exchange}`, { peer: `http-proxy-${exchange}`, aim: { ratioMax: 1.1 } }],
      [`nginx-${exchange}`, { peer: `http-proxy-${exchange}` }],
    ]),
  ),
};

/** Two rows whose difference is measured. */
type Difference = readonly [more: string, less: string];

/** The extra cost of a call: a row with it minus a row without it, compared with the same difference of a peer. */
const calls: readonly {
  readonly name: string;
  readonly what: string;
  readonly of: Difference;
  readonly peer: Difference;
  readonly aim: Aim;
}[] = [
  {
    name: 'label-grpc',
    what: 'a label over gRPC, the call alone',
    of: ['label-grpc', 'chain'],
    peer: ['http2-call', 'koa'],
    aim: { ratioMax: 1.4, figureMax: 70 },
  },
];

/** Adds the rows with which these rows are compared. */
export function withPeers(names: readonly string[]): readonly string[] {
  const peers = names.flatMap((name) => requestAims[name]?.peer ?? []);
  const ofCalls = calls.filter(({ name }) => names.includes(name)).flatMap(({ of, peer }) => [...of, ...peer]);
  const all = [...new Set([...names, ...peers, ...ofCalls, 'koa'])];
  return all.length === names.length ? names : withPeers(all);
}

export function requestRows(figures: readonly Figures[]): TableRow[] {
  const costs = new Map(figures.map(({ row, cpuMicrosPerRequest }) => [row.name, cpuMicrosPerRequest]));
  const rows = figures.map(({ row: { name, title }, cpuMicrosPerRequest }) => {
    const { peer = 'koa', aim } = requestAims[name] ?? {};
    const ratio = cpuMicrosPerRequest / (costs.get(peer) ?? Number.NaN);
    return {
      ...{ name, what: title, figure: cpuMicrosPerRequest, unit: requestUnit, peer, ratio },
      ...(aim === undefined ? {} : { aim }),
    };
  });
  const difference = ([more, less]: Difference) => (costs.get(more) ?? Number.NaN) - (costs.get(less) ?? Number.NaN);
  const measured = calls.filter(({ of, peer }) => [...of, ...peer].every((name) => costs.has(name)));
  const differences = measured.map(({ name, what, of, peer, aim }) => ({
    ...{ name, what, figure: difference(of), unit: requestUnit, peer: peer.join(' - '), aim },
    ratio: difference(of) / difference(peer),
  }));
  return [...rows, ...differences];
}

export interface MissingRow {
  readonly name: string;
  readonly title: string;
  readonly missing: string;
}

export function missingTableRows(rows: readonly MissingRow[]): TableRow[] {
  return rows.map(({ name, title, missing }) => ({
    ...{ name, what: title, figure: undefined, unit: '', missing },
    ...requestAims[name],
  }));
}

export function rateLimitRows(figures: readonly RateLimitFigures[]): TableRow[] {
  const empty = figures[0]?.cpuMicrosPerDecision ?? Number.NaN;
  return figures.map(({ row: { title }, cpuMicrosPerDecision }) => ({
    ...{ name: 'ratelimit', what: title, figure: cpuMicrosPerDecision, unit: 'CPU us/decision' },
    ...{ peer: figures[0]?.row.title ?? '', ratio: cpuMicrosPerDecision / empty },
    aim: { ratioMax: /redis/i.test(title) ? 1.18 : 1.05 },
  }));
}

export function loadRows(figures: readonly LoadFigures[]): TableRow[] {
  return figures.flatMap(({ title, mappings, loadMs, libraryMs, gatewayMs }) => [
    { name: 'load', what: `${mappings} mappings, ${title}: yaml alone`, figure: libraryMs, unit: 'CPU ms' },
    {
      ...{ name: 'load', what: `${mappings} mappings, ${title}`, figure: loadMs, unit: 'CPU ms' },
      ...{ peer: 'yaml alone', ratio: loadMs / libraryMs },
      ...(mappings < 10_000 ? {} : { aim: { figureMax: title.includes('20 lines') ? 3500 : 1500 } }),
    },
    { name: 'load', what: `${mappings} mappings, ${title}: the gateway`, figure: gatewayMs, unit: 'CPU ms' },
  ]);
}

export function loginRows({ calmMs, floodedMs, newcomerMs }: LoginFigures): TableRow[] {
  const calm = 'a user with cached credentials, 99th percentile';
  return [
    { name: 'logins', what: calm, figure: calmMs, unit: 'ms' },
    {
      ...{ name: 'logins', what: '… while 100 passwords a second are guessed', figure: floodedMs, unit: 'ms' },
      ...{ peer: calm, ratio: floodedMs / calmMs, aim: { ratioMax: 2 } },
    },
    {
      name: 'logins',
      what: '… and the slowest newcomer signs in',
      figure: newcomerMs,
      unit: 'ms',
      aim: { figureMax: 1000 },
    },
  ];
}

export function throughputRows(figures: readonly ThroughputFigures[]): TableRow[] {
  const costs = new Map(figures.map(({ proxy, cpuMs }) => [proxy, cpuMs]));
  return figures.flatMap(({ title, proxy, cpuMs, megabytesPerSecond, rssBytes }) => {
    const peer = proxy.replace(/^.*-/, 'http-proxy-');
    const ratio = cpuMs / (costs.get(peer) ?? Number.NaN);
    return [
      { name: 'throughput', what: title, figure: cpuMs, unit: 'CPU ms', peer, ratio },
      { name: 'throughput', what: '… at', figure: megabytesPerSecond, unit: 'MB/s' },
      {
        ...{ name: 'throughput', what: '… memory at most', figure: rssBytes / 1e6, unit: 'MB' },
        ...(proxy.startsWith('proxy') ? { aim: { figureMax: 220 } } : {}),
      },
    ];
  });
}

export function messageRows(figures: readonly MessageFigures[]): TableRow[] {
  return figures.flatMap(({ kind, proxy, title, cpuMicrosPerMessage, delayMicros }) => {
    const peer = figures.find((one) => one.kind === kind && one.proxy === 'http-proxy');
    const compared = { name: 'messages', peer: peer?.title ?? '' };
    const aim = proxy === 'http-proxy' ? {} : { aim: { ratioMax: 1 } };
    const cpuRatio = cpuMicrosPerMessage / (peer?.cpuMicrosPerMessage ?? Number.NaN);
    const delayRatio = delayMicros / (peer?.delayMicros ?? Number.NaN);
    return [
      { ...compared, what: `${kind}: ${title}`, figure: cpuMicrosPerMessage, unit: 'CPU us', ratio: cpuRatio, ...aim },
      { ...compared, what: '… delay', figure: delayMicros, unit: 'us', ratio: delayRatio, ...aim },
    ];
  });
}

export function startUpRows({ readyMs, idleRssBytes, mappingBytes }: StartUpFigures): TableRow[] {
  const comparedWithKoa = (
    what: string,
    unit: string,
    { frontdesk, koa }: StartUpFigures['readyMs'],
    aimMax: number,
  ) => [
    { name: 'startup', what: `bare Koa, ${what}`, figure: koa, unit },
    ...[
      {
        name: 'startup',
        what,
        figure: frontdesk,
        unit,
        peer: 'bare Koa',
        ratio: frontdesk / koa,
        aim: { figureMax: aimMax },
      },
    ],
  ];
  const megabytes = { frontdesk: idleRssBytes.frontdesk / 1e6, koa: idleRssBytes.koa / 1e6 };
  return [
    ...comparedWithKoa('ready after the start of the process', 'ms', readyMs, 700),
    ...comparedWithKoa('memory when idle', 'MB', megabytes, 90),
    ...[...mappingBytes].map(([count, bytes]) => ({
      ...{ name: 'startup', what: `memory for each of ${count} mappings`, figure: bytes / 1e3, unit: 'kB' },
      aim: { figureMax: 6 },
    })),
  ];
}

export function reloadRows({ delayMs, cpuMs, collectedMs }: ReloadFigures): TableRow[] {
  const delay = '10000 mappings reloaded, the longest delay of a timer';
  return [
    { name: 'reload', what: delay, figure: delayMs, unit: 'ms', aim: { figureMax: 50 } },
    { name: 'reload', what: '… CPU time of its thread in that delay', figure: cpuMs, unit: 'CPU ms' },
    { name: 'reload', what: '… the longest garbage collection', figure: collectedMs, unit: 'ms' },
  ];
}

export function soakRows({ requests, failures, swaps, generations, rssBytes }: SoakFigures): TableRow[] {
  const [before, after] = rssBytes;
  return [
    { name: 'soak', what: 'requests', figure: requests, unit: '' },
    { name: 'soak', what: 'configurations written', figure: swaps, unit: '' },
    { name: 'soak', what: 'configurations applied', figure: generations - 1, unit: '' },
    { name: 'soak', what: 'memory at the start', figure: before / 1e6, unit: 'MB' },
    { name: 'soak', what: 'memory at the end', figure: after / 1e6, unit: 'MB' },
    ...failureRows('soak', failures),
  ];
}

export function attackRows(figures: AttackFigures): TableRow[] {
  const { calmMs, attackedMs, requests, failures, attacks, rssBytes } = figures;
  const calm = 'a well-behaved client, 99th percentile';
  const memory = ['before the attacks', 'at their end', 'after a rest'];
  return [
    { name: 'attacks', what: calm, figure: calmMs, unit: 'ms' },
    {
      ...{ name: 'attacks', what: '… among the attacks', figure: attackedMs, unit: 'ms' },
      ...{ peer: calm, ratio: attackedMs / calmMs },
    },
    { name: 'attacks', what: 'its requests', figure: requests, unit: '' },
    ...failureRows('attacks', failures),
    { name: 'attacks', what: 'attacks', figure: attacks, unit: '' },
    ...memory.map((when, index) => ({
      ...{ name: 'attacks', what: `memory ${when}`, figure: (rssBytes[index] ?? 0) / 1e6, unit: 'MB' },
    })),
  ];
}

/** One row for each kind of failure, or one row with zero failures. */
function failureRows(name: string, failures: ReadonlyMap<string, number>): TableRow[] {
  const failed = failures.size === 0 ? [['failed', 0] as const] : [...failures];
  return failed.map(([what, count]) => ({
    name,
    what: `failed: ${what}`,
    figure: count,
    unit: '',
    aim: { figureMax: 0 },
  }));
}

/** Whether the aim is met. Undefined if there is no aim, or the row was not measured. */
export function isMet({ figure, ratio, aim }: TableRow): boolean | undefined {
  if (aim === undefined || figure === undefined) return undefined;
  const { ratioMax, ratioMin, figureMax, moreMax } = aim;
  // Compares the rounded ratio, as the table shows it.
  const shown = ratio === undefined ? Number.NaN : Number(ratio.toFixed(2));
  return (
    (ratioMax === undefined || shown <= ratioMax) &&
    (ratioMin === undefined || shown >= ratioMin) &&
    (figureMax === undefined || figure <= figureMax) &&
    (moreMax === undefined || figure - figure / (ratio ?? Number.NaN) <= moreMax)
  );
}

function formatAim({ ratioMax, ratioMin, figureMax, moreMax }: Aim): string {
  const parts = [
    ...(ratioMax === undefined ? [] : [`ratio up to ${ratioMax}`]),
    ...(ratioMin === undefined ? [] : [`ratio from ${ratioMin}`]),
    ...(figureMax === undefined ? [] : [`up to ${figureMax}`]),
    ...(moreMax === undefined ? [] : [`up to ${moreMax} more`]),
  ];
  return parts.join(', ');
}

export function formatTable(rows: readonly TableRow[]): string {
  const lines = [
    ['row', 'what', 'figure', 'unit', 'peer', 'ratio', 'aim', 'met'],
    ...rows.map((row) => {
      const { name, what, figure, missing, unit, peer = '', ratio, aim } = row;
      const met = isMet(row);
      return [
        ...[name, what, figure?.toFixed(Number.isInteger(figure) ? 0 : 1) ?? '', missing ?? unit],
        ...[peer, ratio?.toFixed(2) ?? '', aim === undefined ? '' : formatAim(aim)],
        met === undefined ? '' : met ? 'yes' : 'no',
      ];
    }),
  ];
  const widths = lines[0]?.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0))) ?? [];
  const isNumber = (column: number) => column === 2 || column === 5;
  const pad = (cell: string, column: number) =>
    isNumber(column) ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0);
  return lines.map((line) => `${line.map(pad).join('  ').trimEnd()}\n`).join('');
}

export function formatJson(rows: readonly TableRow[]): string {
  return `${JSON.stringify(
    rows.map((row) => ({ ...row, met: isMet(row) })),
    null,
    2,
  )}\n`;
}
