#!/usr/bin/env node
/** The command line starts here: checks the Node version, before anything loads that an older Node does not have. */
try {
  await import('./node-version.ts');
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
}

const { runProgram } = await import('./cli/program.ts');
await runProgram();
