/** Preloaded into a process: reports its longest timer delay and garbage collection since the previous report. */
import { PerformanceObserver } from 'node:perf_hooks';
import { isMainThread } from 'node:worker_threads';

const everyMs = 1;
let longest = { delayMs: 0, cpuMs: 0 };
let collectedMs = 0;

function cpuMs() {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

function watch() {
  const [sinceMs, sinceCpuMs] = [performance.now(), cpuMs()];
  setTimeout(() => {
    const found = { delayMs: performance.now() - sinceMs - everyMs, cpuMs: cpuMs() - sinceCpuMs };
    longest = {
      delayMs: Math.max(longest.delayMs, found.delayMs),
      cpuMs: Math.max(longest.cpuMs, found.cpuMs),
    };
    watch();
  }, everyMs).unref();
}

if (isMainThread) {
  watch();
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) collectedMs = Math.max(collectedMs, duration);
  }).observe({ entryTypes: ['gc'] });
  process.on('message', (question) => {
    if (question !== 'timer-delay') return;
    process.send?.({ ...longest, collectedMs });
    longest = { delayMs: 0, cpuMs: 0 };
    collectedMs = 0;
  });
}
