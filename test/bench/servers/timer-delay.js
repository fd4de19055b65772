/** Preloaded into a process: reports its longest timer delay and garbage collection since the previous report. */
import { PerformanceObserver } from 'node:perf_hooks';
import { isMainThread } from 'node:worker_threads';

const everyMs = 1;
let longest = { delayMs: 0, cpuMs: 0 };
let gcMs = 0;

function cpuMs() {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

function watch() {
  const [startMs, startCpuMs] = [performance.now(), cpuMs()];
  setTimeout(() => {
    longest = {
      delayMs: Math.max(longest.delayMs, performance.now() - startMs - everyMs),
      cpuMs: Math.max(longest.cpuMs, cpuMs() - startCpuMs),
    };
    watch();
  }, everyMs).unref();
}

if (isMainThread) {
  watch();
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) gcMs = Math.max(gcMs, duration);
  }).observe({ entryTypes: ['gc'] });
  process.on('message', (message) => {
    if (message !== 'timer-delay') return;
    process.send?.({ ...longest, gcMs });
    longest = { delayMs: 0, cpuMs: 0 };
    gcMs = 0;
  });
}
