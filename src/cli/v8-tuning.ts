/** Makes V8 use less memory and time for a server than it does by default. */
import { executionAsyncResource } from 'node:async_hooks';
import { performance } from 'node:perf_hooks';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/**
 * Each chunk of a body is a buffer outside V8's heap. By default V8 lets 64 MB of them accumulate and then collects the
 * whole heap. With this flag it collects only young objects, after every 16 MB. After every 8 MB would be too soon: the
 * objects of requests in flight would count as old. The young generation of this thread keeps its size: only threads
 * that start later get a smaller one. Node 26 has no such flag.
 */
export function collectBuffersEarly(): void {
  if (process.versions.node.startsWith('24.')) setFlagsFromString('--scavenger-max-new-space-capacity-mb=4');
}

/**
 * By default V8 learns which expressions create objects that live long, and from then on creates those in the old
 * generation. If many requests wait for a slow upstream, it learns that of their objects, for the life of the process. An
 * old object keeps all that it refers to until V8 collects the whole heap, in effect the whole request.
 */
export function createObjectsYoung(): void {
  setFlagsFromString('--no-allocation-site-pretenuring');
}

/**
 * By default V8 collects the whole heap as soon as the old generation and the buffers have grown by a tenth, and after a
 * quiet time keeps to that for long, although bodies of 64 KiB can reach that limit ten times a second. With this flag
 * they may always grow as much as was left after the last collection.
 */
export function collectWholeHeapRarely(): void {
  setFlagsFromString('--heap-growing-percent=100');
}

/** Health checks and a request now and then take less than this share of the time. */
const idleUtilization = 0.02;

/**
 * Returns the memory that only the startup needed, unless the server is busy by then, because the collection holds the
 * event loop for about 60 ms. V8 would keep that memory: it starts a collection only when something is allocated.
 */
export function releaseStartupMemory({ afterMs = 10_000 } = {}): void {
  const sinceReady = performance.eventLoopUtilization();
  const release = () => {
    if (performance.eventLoopUtilization(sinceReady).utilization < idleUtilization) collectGarbage();
  };
  setTimeout(release, afterMs).unref();
}

/**
 * Node creates an object for each `process.nextTick`. When V8 collects the whole heap while no such object exists, it
 * forgets their structure, and from then on creates each of them slowly. An object that is kept prevents this.
 */
export function keepTicksFast(): void {
  process.nextTick(() => {
    const tick = executionAsyncResource();
    process.once('exit', () => tick);
  });
}

/**
 * With this flag, V8 defines `gc` in the contexts that are created afterwards. Nothing else makes it accessible. Does
 * nothing if another thread has just turned the flag off.
 */
function collectGarbage(): void {
  setFlagsFromString('--expose-gc');
  const collect: NodeJS.GCFunction | undefined = runInNewContext('globalThis.gc');
  setFlagsFromString('--no-expose-gc');
  collect?.();
}
