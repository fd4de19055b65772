/** Metrics of the configuration, of client connections, of the log, and of the process. */
import { performance } from 'node:perf_hooks';
import type { ConfigurationError, ConfigurationPart } from '#config';
import type { ConnectionCounts } from '#http';
import type { KubernetesState } from '#kubernetes';
import { counter, type Family, gauge, samplesBy } from './registry.ts';

/** The members of a live configuration that the metrics use. */
export interface ConfigurationState {
  readonly current: () => { readonly number: number; readonly appliedAtMs: number };
  readonly refused: () => readonly { readonly part: ConfigurationPart; readonly sinceMs: number }[];
  readonly errors: () => readonly ConfigurationError[];
  readonly notices: () => readonly ConfigurationError[];
  /** Returns undefined if the records come from files. */
  readonly kubernetes: () => KubernetesState | undefined;
  readonly reloads: () => { readonly succeeded: number; readonly failed: number; readonly lastDurationMs: number };
}

const parts: readonly ConfigurationPart[] = ['records', 'users', 'certificates'];

export function createConfigurationFamilies(configuration: ConfigurationState): readonly Family[] {
  const { current, refused, errors, notices, reloads } = configuration;
  const configurationGauge = (name: string, help: string, value: () => number) =>
    gauge(`frontdesk_configuration_${name}`, help, value, 'first');
  /** Of the oldest of several refused objects. */
  function refusedSince(one: ConfigurationPart): number {
    const times = refused().flatMap(({ part, sinceMs }) => (part === one ? [sinceMs] : []));
    return times.reduce((oldest, time) => Math.min(oldest, time), times[0] ?? 0) / 1000;
  }

  return [
    configurationGauge('generation', 'Number of the current configuration, starting at 1.', () => current().number),
    configurationGauge(
      'applied_timestamp_seconds',
      'When the current configuration was applied, since the epoch.',
      () => current().appliedAtMs / 1000,
    ),
    configurationGauge(
      'errors',
      'Errors in the configuration files, or in the objects of the cluster, as they are now.',
      () => errors().length,
    ),
    configurationGauge('notices', 'Notices about the configuration files as they are now.', () => notices().length),
    {
      name: 'frontdesk_configuration_refused_since_timestamp_seconds',
      type: 'gauge',
      labels: ['part'],
      help: 'Since when the files have had errors in `records` (with the limits), `users` or `certificates`, or since when the oldest of the refused objects of a cluster has been refused, since the epoch. 0 without errors.',
      merge: 'first',
      samples: () => samplesBy('part', Object.fromEntries(parts.map((part) => [part, refusedSince(part)]))),
    },
    {
      name: 'frontdesk_configuration_reloads_total',
      type: 'counter',
      labels: ['result'],
      help: 'Reloads of changed files, or of a cluster: `success`, or `error` if records and limits, or any user or object, are refused.',
      merge: 'first',
      samples: () => samplesBy('result', { success: reloads().succeeded, error: reloads().failed }),
    },
    configurationGauge(
      'last_reload_success',
      '0 while records and limits, or any user, certificate or object of a cluster, are refused because of errors.',
      () => (errors().length === 0 ? 1 : 0),
    ),
    configurationGauge(
      'last_reload_duration_seconds',
      'How long the last reload took to read, check and apply the files. 0 before the first reload.',
      () => reloads().lastDurationMs / 1000,
    ),
  ];
}

/** Creates the metrics of client connections, on all listeners except the admin port. */
export function createConnectionFamilies(counts: () => ConnectionCounts): readonly Family[] {
  return [
    gauge('frontdesk_connections', 'Open client connections.', () => counts().open),
    gauge(
      'frontdesk_connections_max',
      'Maximum number of open client connections (`CONNECTIONS_MAX`).',
      () => counts().max,
    ),
    gauge(
      'frontdesk_http2_connections',
      'Those of the open client connections that speak HTTP/2, without those of the rate-limit port.',
      () => counts().http2,
    ),
    counter('frontdesk_http2_requests_total', 'Requests over these connections.', () => counts().http2Requests),
    counter(
      'frontdesk_connections_refused_total',
      'Connections rejected because the maximum was reached.',
      () => counts().refused,
    ),
    counter(
      'frontdesk_connections_idle_closed_total',
      'Idle connections, and those without a request, closed early to make room.',
      () => counts().idleClosed,
    ),
  ];
}

/** Returns each certificate with its name, and when it expires, in milliseconds since the epoch. */
export type CertificatesOf = () => readonly { readonly name: string; readonly validToMs: number }[];

/** Without TLS, the metric has no series. */
export function createCertificateFamily(certificates: CertificatesOf): Family {
  return {
    name: 'frontdesk_certificate_expires_timestamp_seconds',
    type: 'gauge',
    labels: ['certificate'],
    help: 'When a certificate of the gateway expires, since the epoch. `certificate` is its file in `TLS_DIR`, `TLS_CERT`, or its Secret.',
    merge: 'first',
    samples: () =>
      certificates().map(({ name: certificate, validToMs }) => ({ labels: { certificate }, value: validToMs / 1000 })),
  };
}

export function createLogFamily(droppedLines: () => number = () => 0): Family {
  const help = 'Log lines dropped because the output could not keep up.';
  return counter('frontdesk_log_lines_dropped_total', help, droppedLines);
}

/**
 * Creates the metrics of the process, under the usual names for Node dashboards. They are computed at each scrape. The
 * default metrics of prom-client would start a garbage collection observer and an event loop timer, with no way to
 * stop them.
 */
export function createProcessFamilies(): readonly Family[] {
  return [
    counter('process_cpu_user_seconds_total', 'CPU time spent in user mode.', () => cpuSeconds().user, 'first'),
    counter('process_cpu_system_seconds_total', 'CPU time spent in the kernel.', () => cpuSeconds().system, 'first'),
    counter('process_cpu_seconds_total', 'Total CPU time.', () => cpuSeconds().user + cpuSeconds().system, 'first'),
    gauge(
      'process_start_time_seconds',
      'When the process started, since the epoch.',
      () => performance.timeOrigin / 1000,
      'first',
    ),
    gauge('process_resident_memory_bytes', 'Resident memory of the process.', () => process.memoryUsage.rss(), 'first'),
    gauge('nodejs_heap_size_total_bytes', 'Size of the heap.', () => process.memoryUsage().heapTotal),
    gauge('nodejs_heap_size_used_bytes', 'Used part of the heap.', () => process.memoryUsage().heapUsed),
    gauge(
      'nodejs_external_memory_bytes',
      'Memory of native objects outside the heap.',
      () => process.memoryUsage().external,
    ),
    counter(
      'nodejs_eventloop_active_seconds_total',
      'Time during which the event loop was busy. At 1 per second it is saturated.',
      () => performance.eventLoopUtilization().active / 1000,
    ),
    {
      name: 'nodejs_version_info',
      type: 'gauge',
      labels: ['version'],
      help: 'Always 1.',
      merge: 'first',
      samples: () => samplesBy('version', { [process.version]: 1 }),
    },
  ];
}

function cpuSeconds(): { readonly user: number; readonly system: number } {
  const { user, system } = process.cpuUsage();
  return { user: user / 1e6, system: system / 1e6 };
}
