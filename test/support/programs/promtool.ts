/** Runs promtool, which is part of Prometheus and parses metrics and rules as Prometheus does. */
import { spawnSync } from 'node:child_process';

/** Returns the output if promtool succeeds, and otherwise throws it. */
export function promtool(args: readonly string[], input = ''): string {
  const { status, stdout, stderr } = spawnSync('promtool', args, { input, encoding: 'utf8' });
  if (status !== 0) throw new Error(`promtool ${args.join(' ')}: ${stdout}${stderr}`);
  return stdout + stderr;
}
