#!/usr/bin/env node
/** The command line starts here: checks the Node version, before anything loads that an older Node does not have. */
import { endOnStopSignals } from './cli/stop-signals.ts';

const command = process.argv[2];
if (command === 'serve' || command === 'split') {
  // First, since loading takes a while: by default the signal to reload ends the process, and a supervisor may send it any time.
  process.on('SIGHUP', () => {});
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
