/** The figures as a table for people. */
import type { LoadFigures } from './load-configuration.ts';
import type { Figures } from './measure.ts';
import type { RateLimitFigures } from './ratelimit.ts';
import type { SoakFigures } from './soak.ts';

export function formatFigures(figures: readonly Figures[]): string {
  const koa = figures.find(({ row }) => row.name === 'koa')?.cpuMicrosPerRequest ?? Number.NaN;
  return formatTable([
    ['row', 'server', 'CPU us/request', 'to Koa', 'requests/s'],
    ...figures.map(({ row, cpuMicrosPerRequest, requestsPerSecond }) => [
      row.name,
      row.title,
      cpuMicrosPerRequest.toFixed(1),
      (cpuMicrosPerRequest / koa).toFixed(2),
      requestsPerSecond.toFixed(0),
    ]),
  ]);
}

export function formatStartUp(readyMs: number, idleRssBytes: number): string {
  return `ready ${readyMs.toFixed(0)} ms after the start of the process; ${(idleRssBytes / 1e6).toFixed(0)} MB when idle\n`;
}

export function formatRateLimit(figures: readonly RateLimitFigures[]): string {
  const empty = figures[0]?.decisionsPerSecond ?? Number.NaN;
  return formatTable([
    ['server', '', 'CPU us/decision', 'decisions/s', 'to empty', 'MB'],
    ...figures.map(({ row, cpuMicrosPerDecision, decisionsPerSecond, rssBytes }) => [
      row.title,
      '',
      cpuMicrosPerDecision.toFixed(1),
      decisionsPerSecond.toFixed(0),
      (decisionsPerSecond / empty).toFixed(2),
      (rssBytes / 1e6).toFixed(0),
    ]),
  ]);
}

export function formatSoak({ requests, failures, swaps, generations, rssBytes }: SoakFigures): string {
  const megabytes = rssBytes.map((bytes) => (bytes / 1e6).toFixed(0));
  return formatTable([
    ['soak', '', ''],
    ['requests', '', String(requests)],
    ['configurations written', '', String(swaps)],
    ['taken over', '', String(generations - 1)],
    ['memory at the start and at the end, MB', '', megabytes.join(', ')],
    ...(failures.size === 0 ? [['failed', '', '0']] : []),
    ...[...failures].map(([outcome, count]) => ['failed', outcome, String(count)]),
  ]);
}

export function formatLoad(figures: readonly LoadFigures[]): string {
  return formatTable([
    ['configuration', '', 'mappings', 'load ms', 'gateway ms'],
    ...figures.map(({ title, mappings, loadMs, gatewayMs }) => [
      ...[title, '', String(mappings)],
      ...[loadMs, gatewayMs].map((ms) => ms.toFixed(0)),
    ]),
  ]);
}

/** Text to the left, numbers to the right. */
function formatTable(lines: readonly (readonly string[])[]): string {
  const widths = (lines[0] ?? []).map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  const pad = (cell: string, column: number) =>
    column < 2 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0);
  return lines.map((line) => `${line.map(pad).join('  ').trimEnd()}\n`).join('');
}
