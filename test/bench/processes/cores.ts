/**
 * Runs the servers under test on one core, and all other processes of the benchmark on the rest. Sharing cores changes
 * the CPU time of a request by half from one round to the next. Only throughput is measured on all cores.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { isInstalled } from '../../support/programs/installed.ts';

const available = isInstalled('taskset') ? availableCores() : [];
const canSeparate = available.length > 1;
const [measuredCore, ...otherCores] = available;

/** All cores that the benchmark may use, before it leaves one. */
export const coreCount = availableParallelism();

/** Called once, before any process starts. Without `taskset` or with one core, the processes share all cores. */
export function leaveMeasuredCore(): void {
  if (canSeparate) moveTo(otherCores);
}

/** The processes that `start` starts stay on the measured core. Must not overlap another call. */
export async function onMeasuredCore<T>(start: () => T | Promise<T>): Promise<T> {
  return await startOnCores([measuredCore], start);
}

/** The processes that `start` starts may use all cores. Must not overlap another call. */
export async function onAllCores<T>(start: () => T | Promise<T>): Promise<T> {
  return await startOnCores(available, start);
}

async function startOnCores<T>(cores: readonly unknown[], start: () => T | Promise<T>): Promise<T> {
  if (!canSeparate) return await start();
  moveTo(cores);
  try {
    return await start();
  } finally {
    moveTo(otherCores);
  }
}

/** Moves this process. Processes that it starts later inherit its cores. */
function moveTo(cores: readonly unknown[]): void {
  execFileSync('taskset', ['--all-tasks', '--cpu-list', '--pid', cores.join(), String(process.pid)]);
}

/** The cores that this process may use, which a container may restrict. proc(5) lists them as ranges such as `0-2,4`. */
function availableCores(): readonly number[] {
  const ranges = /^Cpus_allowed_list:\s*(\S+)$/m.exec(readFileSync('/proc/self/status', 'latin1'))?.[1] ?? '';
  return ranges.split(',').flatMap((range) => {
    const [first = 0, last = first] = range.split('-').map(Number);
    return Array.from({ length: last - first + 1 }, (_, index) => first + index);
  });
}
