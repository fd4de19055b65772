/** Starts a child process that reports its CPU time and memory. */

import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export interface ChildOptions {
  /** The arguments of `node`: options, file and arguments of the file. */
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** The file for standard output. @default discarded */
  readonly outputFile?: string;
}

export interface Usage {
  /** User and system time since the process started. */
  readonly cpuMicros: number;
  readonly rssBytes: number;
  /** Node's used heap, after a garbage collection if the process has --expose-gc. Undefined for other programs. */
  readonly heapBytes?: number;
}

export interface Child {
  readonly process: ChildProcess;
  readonly usage: () => Promise<Usage>;
  readonly stop: () => Promise<void>;
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

export function startChild({ args, env, outputFile }: ChildOptions): Child {
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
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill();
      await once(child, 'exit');
    },
  };
}
