/** What the process uses of the machine, under the names that dashboards for Node know. */
import { performance } from 'node:perf_hooks';
import type { Family } from './exposition.ts';

/**
 * Each is read when it is asked for, and nothing runs in between: prom-client's own set brings an observer of the garbage
 * collection and a timer on the event loop that nobody can stop again.
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
      samples: () => [{ labels: { version: process.version }, value: 1 }],
    },
  ];
}

function cpuSeconds(): { readonly user: number; readonly system: number } {
  const { user, system } = process.cpuUsage();
  return { user: user / 1e6, system: system / 1e6 };
}

function counter(name: string, help: string, value: () => number): Family {
  return { name, type: 'counter', labels: [], help, samples: () => [{ labels: {}, value: value() }] };
}

function gauge(name: string, help: string, value: () => number): Family {
  return { ...counter(name, help, value), type: 'gauge' };
}
