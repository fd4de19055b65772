/** Starts processes that report their CPU time and memory. */
import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { endProcess } from '../../support/programs/end-process.ts';

export interface Usage {
  /** User and system time since the process started. */
  readonly cpuMicros: number;
  readonly rssBytes: number;
  /** Node's used heap, after a garbage collection if the process has --expose-gc. Undefined for other programs. */
  readonly heapBytes?: number;
}

/** A server under test, which may consist of several processes. */
export interface MeasuredServer {
  readonly usage: () => Promise<Usage>;
  readonly stop: () => Promise<void>;
}

/** A process that runs Node. */
export interface Child extends MeasuredServer {
  readonly process: ChildProcess;
}

export const root = fileURLToPath(new URL('../../../', import.meta.url));

/** A module that is loaded before the program: reports the usage on request, and ends the process with its parent. */
const probe = `data:text/javascript,${encodeURIComponent(`
  process.on('message', (message) => {
    if (message !== 'usage') return;
    const { user, system } = process.cpuUsage();
    globalThis.gc?.();
    const { rss: rssBytes, heapUsed: heapBytes } = process.memoryUsage();
    process.send({ cpuMicros: user + system, rssBytes, heapBytes });
  });
  process.on('disconnect', () => process.exit());
`)}`;

/**
 * @param args the arguments of `node`: options, file and arguments of the file
 * @param outputFile the file for standard output, which is discarded by default
 */
export function startChild(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  outputFile?: string,
): Child {
  const output = outputFile === undefined ? 'ignore' : openSync(outputFile, 'a');
  const stdio: StdioOptions = ['ignore', output, 'inherit', 'ipc'];
  const child = spawn(process.execPath, ['--import', probe, ...args], {
    cwd: root,
    env: { ...process.env, ...env },
    stdio,
  });
  if (typeof output === 'number') closeSync(output);
  return {
    process: child,
    async usage() {
      child.send('usage');
      const [usage] = await once(child, 'message');
      return usage as Usage;
    },
    stop: () => endProcess(child, 'SIGTERM'),
  };
}
