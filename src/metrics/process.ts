/** The configuration in force, connections of clients, and the process: CPU, memory, event loop. */
import { performance } from 'node:perf_hooks';
import type { ConfigurationError } from '#config';
import type { ConnectionCounts } from '#http';
import { counter, type Family, gauge, samplesBy } from './registry.ts';

/** The part of a live configuration that its metrics read. */
export interface ConfigurationState {
  readonly current: () => { readonly number: number; readonly appliedAtMs: number };
  readonly errors: () => readonly ConfigurationError[];
  readonly notices: () => readonly ConfigurationError[];
  readonly reloads: () => { readonly succeeded: number; readonly failed: number; readonly lastDurationMs: number };
}

export function createConfigurationFamilies(configuration: ConfigurationState): readonly Family[] {
  const { current, errors, notices, reloads } = configuration;
  const own = (name: string, help: string, value: () => number) =>
    gauge(`frontdesk_configuration_${name}`, help, value);
  return [
    own('generation', 'Number of the configuration in force, from 1 at the start.', () => current().number),
    own('applied_timestamp_seconds', 'When it came into force.', () => current().appliedAtMs / 1000),
    own('errors', 'What is wrong with the files as they are now.', () => errors().length),
    own('notices', 'What is odd about them without being wrong.', () => notices().length),
    {
      name: 'frontdesk_configuration_reloads_total',
      type: 'counter',
      labels: ['result'],
      help: 'Changes of the files that were read: `success`, or `error` where some or all of it is broken.',
      samples: () => samplesBy('result', { success: reloads().succeeded, error: reloads().failed }),
    },
    own('last_reload_success', '0 while something of the files is broken, and what was good before stays.', () =>
      errors().length === 0 ? 1 : 0,
    ),
    own(
      'last_reload_duration_seconds',
      'How long the last change took to be read, checked and put into force; 0 before the first.',
      () => reloads().lastDurationMs / 1000,
    ),
  ];
}

/** Of all listeners but the admin port. */
export function createConnectionFamilies(counts: () => ConnectionCounts): readonly Family[] {
  return [
    gauge('frontdesk_connections', 'Connections of clients that are open.', () => counts().open),
    gauge('frontdesk_connections_max', 'How many may be open: `CONNECTIONS_MAX`.', () => counts().max),
    counter(
      'frontdesk_connections_refused_total',
      'Connections that were refused because as many were open.',
      () => counts().refused,
    ),
    counter(
      'frontdesk_connections_idle_closed_total',
      'Idle connections that were closed early, to make room.',
      () => counts().idleClosed,
    ),
  ];
}

export function createLogFamily(droppedLines: () => number = () => 0): Family {
  const help = 'Lines of the log that were dropped, because the output did not take them.';
  return counter('frontdesk_log_lines_dropped_total', help, droppedLines);
}

/**
 * The process, under the names that dashboards for Node know. Read at the scrape, and nothing runs in between: prom-client's
 * own set brings an observer of the garbage collection and a timer on the event loop that cannot be stopped.
 */
export function createProcessFamilies(): readonly Family[] {
  return [
    counter('process_cpu_user_seconds_total', 'Time on a processor, in its own code.', () => cpuSeconds().user),
    counter('process_cpu_system_seconds_total', 'Time on a processor, in the kernel.', () => cpuSeconds().system),
    counter('process_cpu_seconds_total', 'Time on a processor.', () => cpuSeconds().user + cpuSeconds().system),
    gauge(
      'process_start_time_seconds',
      'When the process began, since the epoch.',
      () => performance.timeOrigin / 1000,
    ),
    gauge('process_resident_memory_bytes', 'Memory of the process in RAM.', () => process.memoryUsage.rss()),
    gauge('nodejs_heap_size_total_bytes', 'What the heap has taken.', () => process.memoryUsage().heapTotal),
    gauge('nodejs_heap_size_used_bytes', 'What of it is in use.', () => process.memoryUsage().heapUsed),
    gauge('nodejs_external_memory_bytes', 'Memory beside the heap.', () => process.memoryUsage().external),
    counter(
      'nodejs_eventloop_active_seconds_total',
      'Time in which the event loop had work: at 1 a second it is full.',
      () => performance.eventLoopUtilization().active / 1000,
    ),
    {
      name: 'nodejs_version_info',
      type: 'gauge',
      labels: ['version'],
      help: 'Always 1.',
      samples: () => samplesBy('version', { [process.version]: 1 }),
    },
  ];
}

function cpuSeconds(): { readonly user: number; readonly system: number } {
  const { user, system } = process.cpuUsage();
  return { user: user / 1e6, system: system / 1e6 };
}
