#!/usr/bin/env node
/** The entry point of the command line. Checks the Node version before it loads anything that needs a recent Node. */
import module from 'node:module';
import { fileURLToPath } from 'node:url';
import { endOnStopSignals } from './cli/stop-signals.ts';

// Keeps compiled code for the next start in this package, which nobody else can write to, because Node runs what the
// cache contains. Node goes on without it if the directory is read-only, and Node 20 has no such function.
module.enableCompileCache?.(fileURLToPath(new URL('../.cache', import.meta.url)));

const command = process.argv[2];
if (command === 'serve' || command === 'split') {
  // Comes first, because loading the rest takes a while. A supervisor may send SIGHUP in the meantime, which by default
  // would end the process.
  process.on('SIGHUP', () => {});
  // By default, SIGUSR1 makes Node open a debugger, which runs any code for anyone who can connect to it, and SIGUSR2
  // ends the process.
  for (const signal of ['SIGUSR1', 'SIGUSR2'] as const) process.on(signal, () => {});
  endOnStopSignals();
}

try {
  await import('./node-version.ts');
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
}

const { runProgram } = await import('./cli/program.ts');
await runProgram();
