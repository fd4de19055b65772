/** Before all tests, once: what runs as a process of its own is what is published. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** By its name mocha knows when to call it. */
export function mochaGlobalSetup(): void {
  const cwd = fileURLToPath(new URL('../..', import.meta.url));
  const { status } = spawnSync('npm', ['run', '--silent', 'build'], { cwd, stdio: 'inherit' });
  if (status !== 0) throw new Error('the build failed');
}
