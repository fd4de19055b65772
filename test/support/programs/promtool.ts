/** promtool, which comes with Prometheus, and reads metrics and rules as Prometheus does. */
import { spawnSync } from 'node:child_process';

/** What it printed, where it found nothing wrong; otherwise throws what it said. */
export function promtool(args: readonly string[], input = ''): string {
  const { status, stdout, stderr } = spawnSync('promtool', args, { input, encoding: 'utf8' });
  if (status !== 0) throw new Error(`promtool ${args.join(' ')}: ${stdout}${stderr}`);
  return stdout + stderr;
}
