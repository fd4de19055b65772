/** Formats all figures as one table, each with its peer, the ratio to the peer, and the target. */
import type { AttackFigures } from './measurements/attacks.ts';
import type { LoadFigures } from './measurements/load-configuration.ts';
import type { LoginFigures } from './measurements/logins.ts';
import type { MessageFigures } from './measurements/messages.ts';
import type { RateLimitFigures } from './measurements/ratelimit.ts';
import type { ReloadFigures } from './measurements/reload.ts';
import type { Figures } from './measurements/request-cost.ts';
import type { SoakFigures } from './measurements/soak.ts';
import type { Pair, StartUpFigures } from './measurements/startup.ts';
import type { ThroughputFigures } from './measurements/throughput.ts';

export interface TableRow {
  readonly name: string;
  /** What is measured, followed by the server after a colon. */
  readonly title: string;
  /** Undefined if it was not measured. */
  readonly figure: number | undefined;
  /** The reason why it was not measured. */
  readonly missing?: string;
  readonly unit: string;
  /** The row that it is compared with: its name, or what differs in its title. */
  readonly peer?: string;
  /** The figure divided by the peer's. */
  readonly ratio?: number;
  readonly target?: Target;
}

/** All given conditions must hold. `extraMax` bounds the difference from the peer's figure. */
export interface Target {
  readonly ratioMax?: number;
  readonly ratioMin?: number;
  readonly figureMax?: number;
  readonly extraMax?: number;
}

const requestUnit = 'CPU us/request';

/** Peers and targets of requests, by row. The default is bare Koa as peer and no target. */
const comparisons: Readonly<Record<string, { readonly peer?: string; readonly target?: Target }>> = {
  chain: { target: { ratioMax: 1.8 } },
  'chain-log': { target: { ratioMax: 2.3 } },
  label: { peer: 'chain', target: { extraMax: 5 } },
  'label-grpc': { peer: 'chain', target: { extraMax: 70 } },
  envoy: { peer: 'label', target: { ratioMin: 5 } },
  'full-headers': { peer: 'chain' },
  'full-body': { peer: 'chain' },
  'create-booking': { peer: 'insert', target: { ratioMax: 2, figureMax: 300 } },
  'create-booking-pg': { peer: 'create-booking' },
  'list-bookings': { peer: 'select', target: { ratioMax: 2 } },
  ...Object.fromEntries(
    ['1k', '64k', '1m', 'post'].flatMap((exchange) => [
      [`proxy-${exchange}`, { peer: `http-proxy-${exchange}`, target: { ratioMax: 1 } }],
      [`proxy-auth-${exchange}`, { peer: `http-proxy-${exchange}`, target: { ratioMax: 1.1 } }],
      [`nginx-${exchange}`, { peer: `http-proxy-${exchange}` }],
    ]),
  ),
};

/** The cost of a call alone: a row with it minus a row without it, compared with the same difference of a peer. */
const limiterCall = {
  name: 'label-grpc',
  title: 'call the limiter over gRPC: frontdesk (label-grpc - chain)',
  rows: ['label-grpc', 'chain'],
  peers: ['http2-call', 'koa'],
  target: { ratioMax: 1.4, figureMax: 70 },
} as const;

/** Adds the rows with which these rows are compared. */
export function withPeers(names: readonly string[]): readonly string[] {
  const { name: call, rows, peers: callPeers } = limiterCall;
  const peers = names.flatMap((name) => comparisons[name]?.peer ?? []);
  const ofCall = names.includes(call) ? [...rows, ...callPeers] : [];
  const all = [...new Set([...names, ...peers, ...ofCall, 'koa'])];
  return all.length === names.length ? names : withPeers(all);
}

export function requestRows(figures: readonly Figures[]): TableRow[] {
  const costs = new Map(figures.map(({ row, cpuMicrosPerRequest }) => [row.name, cpuMicrosPerRequest]));
  const costOf = (name: string) => costs.get(name) ?? Number.NaN;
  const rows = figures.map(({ row: { name, title }, cpuMicrosPerRequest: figure }) => {
    const { peer = 'koa', target } = comparisons[name] ?? {};
    return {
      ...{ name, title, figure, unit: requestUnit, peer, ratio: figure / costOf(peer) },
      ...(target === undefined ? {} : { target }),
    };
  });
  const difference = ([more, less]: readonly [string, string]) => costOf(more) - costOf(less);
  const { rows: measured, peers, ...call } = limiterCall;
  if (![...measured, ...peers].every((name) => costs.has(name))) return rows;
  const [figure, peerFigure] = [difference(measured), difference(peers)];
  return [...rows, { ...call, figure, unit: requestUnit, peer: peers.join(' - '), ratio: figure / peerFigure }];
}

export interface MissingRow {
  readonly name: string;
  readonly title: string;
  readonly missing: string;
}

export function missingTableRows(rows: readonly MissingRow[]): TableRow[] {
  return rows.map(({ name, title, missing }) => ({
    ...{ name, title, figure: undefined, unit: '', missing },
    ...comparisons[name],
  }));
}

export function rateLimitRows(figures: readonly RateLimitFigures[]): TableRow[] {
  const empty = figures[0]?.cpuMicrosPerDecision ?? Number.NaN;
  return figures.map(({ row: { title }, cpuMicrosPerDecision }) => ({
    ...{ name: 'ratelimit', title, figure: cpuMicrosPerDecision, unit: 'CPU us/decision' },
    ...{ peer: 'grpc-js with an empty handler', ratio: cpuMicrosPerDecision / empty },
    target: { ratioMax: /redis/i.test(title) ? 1.18 : 1.05 },
  }));
}

export function loadRows(figures: readonly LoadFigures[]): TableRow[] {
  return figures.flatMap(({ title: layout, mappings, loadMs, libraryMs, gatewayMs }) => {
    const load = `load ${mappings} mappings, ${layout}`;
    const peer = 'the yaml library alone';
    return [
      { name: 'load', title: `${load}: ${peer}`, figure: libraryMs, unit: 'CPU ms' },
      {
        ...{ name: 'load', title: `${load}: frontdesk`, figure: loadMs, unit: 'CPU ms' },
        ...{ peer, ratio: loadMs / libraryMs },
        ...(mappings < 10_000 ? {} : { target: { figureMax: layout.includes('20 lines') ? 3500 : 1500 } }),
      },
      { name: 'load', title: `${load}: building the gateway`, figure: gatewayMs, unit: 'CPU ms' },
    ];
  });
}

export function loginRows({ beforeMs, duringMs, newcomerMs }: LoginFigures): TableRow[] {
  const latency = 'latency of a user with cached credentials, 99th percentile';
  const during = 'while 100 passwords a second are guessed';
  return [
    { name: 'logins', title: `${latency}, before any guess`, figure: beforeMs, unit: 'ms' },
    {
      ...{ name: 'logins', title: `${latency}, ${during}`, figure: duringMs, unit: 'ms' },
      ...{ peer: 'before any guess', ratio: duringMs / beforeMs, target: { ratioMax: 2 } },
    },
    {
      ...{ name: 'logins', title: `the slowest first login of a user, ${during}`, figure: newcomerMs, unit: 'ms' },
      target: { figureMax: 1000 },
    },
  ];
}

export function throughputRows(figures: readonly ThroughputFigures[]): TableRow[] {
  return figures.flatMap(({ title, proxy, direction, cpuMs, megabytesPerSecond, rssBytes }) => {
    const peer = figures.find((one) => one.direction === direction && one.proxy === 'http-proxy');
    const ratio = cpuMs / (peer?.cpuMs ?? Number.NaN);
    return [
      { name: 'throughput', title, figure: cpuMs, unit: 'CPU ms', peer: '@fastify/http-proxy', ratio },
      { name: 'throughput', title: `${title}, speed`, figure: megabytesPerSecond, unit: 'MB/s' },
      {
        ...{ name: 'throughput', title: `${title}, peak memory`, figure: rssBytes / 1e6, unit: 'MB' },
        ...(proxy.startsWith('proxy') ? { target: { figureMax: 220 } } : {}),
      },
    ];
  });
}

export function messageRows(figures: readonly MessageFigures[]): TableRow[] {
  return figures.flatMap(({ kind, proxy, title: proxyTitle, cpuMicrosPerMessage, delayMicros }) => {
    const peer = figures.find((one) => one.kind === kind && one.proxy === 'http-proxy');
    const title = `${kind}: ${proxyTitle}`;
    const compared = { name: 'messages', peer: '@fastify/http-proxy' };
    const target = proxy === 'http-proxy' ? {} : { target: { ratioMax: 1 } };
    const cpuRatio = cpuMicrosPerMessage / (peer?.cpuMicrosPerMessage ?? Number.NaN);
    const delayRatio = delayMicros / (peer?.delayMicros ?? Number.NaN);
    return [
      { ...compared, title, figure: cpuMicrosPerMessage, unit: 'CPU us', ratio: cpuRatio, ...target },
      { ...compared, title: `${title}, delay`, figure: delayMicros, unit: 'us', ratio: delayRatio, ...target },
    ];
  });
}

export function startUpRows({ readyMs, idleRssBytes, mappingBytes }: StartUpFigures): TableRow[] {
  const comparedWithKoa = (title: string, unit: string, { frontdesk, koa }: Pair, figureMax: number): TableRow[] => [
    { name: 'startup', title: `${title}: bare Koa`, figure: koa, unit },
    {
      ...{ name: 'startup', title: `${title}: frontdesk`, figure: frontdesk, unit },
      ...{ peer: 'bare Koa', ratio: frontdesk / koa, target: { figureMax } },
    },
  ];
  const megabytes = { frontdesk: idleRssBytes.frontdesk / 1e6, koa: idleRssBytes.koa / 1e6 };
  return [
    ...comparedWithKoa('from the start of the process to its first response', 'ms', readyMs, 700),
    ...comparedWithKoa('memory when idle', 'MB', megabytes, 90),
    ...[...mappingBytes].map(([count, bytes]) => ({
      ...{ name: 'startup', title: `memory for each of ${count} mappings`, figure: bytes / 1e3, unit: 'kB' },
      target: { figureMax: 6 },
    })),
  ];
}

export function reloadRows({ delayMs, cpuMs, gcMs }: ReloadFigures): TableRow[] {
  const reload = 'reload 10000 mappings';
  return [
    {
      ...{ name: 'reload', title: `${reload}: the longest delay of a timer`, figure: delayMs, unit: 'ms' },
      target: { figureMax: 50 },
    },
    { name: 'reload', title: `${reload}: the CPU time of the thread in that delay`, figure: cpuMs, unit: 'CPU ms' },
    { name: 'reload', title: `${reload}: the longest garbage collection`, figure: gcMs, unit: 'ms' },
  ];
}

export function soakRows({ requests, failures, changes, generations, rssBytes }: SoakFigures): TableRow[] {
  const [before, after] = rssBytes;
  return [
    { name: 'soak', title: 'requests sent', figure: requests, unit: '' },
    { name: 'soak', title: 'configurations written', figure: changes, unit: '' },
    { name: 'soak', title: 'configurations applied', figure: generations - 1, unit: '' },
    { name: 'soak', title: 'memory at the start', figure: before / 1e6, unit: 'MB' },
    { name: 'soak', title: 'memory at the end', figure: after / 1e6, unit: 'MB' },
    ...failureRows('soak', failures),
  ];
}

export function attackRows(figures: AttackFigures): TableRow[] {
  const { beforeMs, duringMs, requests, failures, attacks, rssBytes } = figures;
  const latency = 'latency of a well-behaved client, 99th percentile';
  const times = ['before the attacks', 'at the end of the attacks', 'after the attacks and a pause'];
  return [
    { name: 'attacks', title: `${latency}, ${times[0]}`, figure: beforeMs, unit: 'ms' },
    {
      ...{ name: 'attacks', title: `${latency}, during the attacks`, figure: duringMs, unit: 'ms' },
      ...{ peer: 'before the attacks', ratio: duringMs / beforeMs },
    },
    { name: 'attacks', title: 'requests sent by the well-behaved client', figure: requests, unit: '' },
    ...failureRows('attacks', failures),
    { name: 'attacks', title: 'attacks sent', figure: attacks, unit: '' },
    ...times.map((time, index) => ({
      ...{ name: 'attacks', title: `memory ${time}`, figure: (rssBytes[index] ?? 0) / 1e6, unit: 'MB' },
    })),
  ];
}

/** One row for each kind of failure, or one row with zero failures. */
function failureRows(name: string, failures: ReadonlyMap<string, number>): TableRow[] {
  const rows = [...failures].map(([outcome, count]) => [`failed requests: ${outcome}`, count] as const);
  return (rows.length === 0 ? [['failed requests', 0] as const] : rows).map(([title, figure]) => ({
    ...{ name, title, figure, unit: '' },
    target: { figureMax: 0 },
  }));
}

/** Whether the target is met. Undefined if there is no target, or the row was not measured. */
export function isMet({ figure, ratio, target }: TableRow): boolean | undefined {
  if (target === undefined || figure === undefined) return undefined;
  const { ratioMax, ratioMin, figureMax, extraMax } = target;
  // Compares the rounded ratio, as the table shows it.
  const shown = ratio === undefined ? Number.NaN : Number(ratio.toFixed(2));
  return (
    (ratioMax === undefined || shown <= ratioMax) &&
    (ratioMin === undefined || shown >= ratioMin) &&
    (figureMax === undefined || figure <= figureMax) &&
    (extraMax === undefined || figure - figure / (ratio ?? Number.NaN) <= extraMax)
  );
}

function formatTarget({ ratioMax, ratioMin, figureMax, extraMax }: Target): string {
  const backends = [
    ...(ratioMax === undefined ? [] : [`ratio up to ${ratioMax}`]),
    ...(ratioMin === undefined ? [] : [`ratio from ${ratioMin}`]),
    ...(figureMax === undefined ? [] : [`up to ${figureMax}`]),
    ...(extraMax === undefined ? [] : [`up to ${extraMax} more than the peer`]),
  ];
  return backends.join(', ');
}

export function formatTable(rows: readonly TableRow[]): string {
  const lines = [
    ['row', 'title', 'figure', 'unit', 'peer', 'ratio', 'target', 'met'],
    ...rows.map((row) => {
      const { name, title, figure, missing, unit, peer = '', ratio, target } = row;
      const met = isMet(row);
      return [
        ...[name, title, figure?.toFixed(Number.isInteger(figure) ? 0 : 1) ?? '', missing ?? unit],
        ...[peer, ratio?.toFixed(2) ?? '', target === undefined ? '' : formatTarget(target)],
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
