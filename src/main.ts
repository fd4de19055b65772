#!/usr/bin/env node
/** The command line starts here: checks the Node version, before anything loads that an older Node does not have. */
const command = process.argv[2];
// First, since loading takes a while: by default the signal to reload ends the process, and a supervisor may send it any time.
if (command === 'serve' || command === 'split') process.on('SIGHUP', () => {});

try {
  await import('./node-version.ts');
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
}

const { runProgram } = await import('./cli/program.ts');
await runProgram();
