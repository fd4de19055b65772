/** Runs kubectl against the API server of a test, as its administrator. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { adminToken, type KubernetesServer } from './api-server.ts';

/** Resolves to what it printed. Rejects if it fails. */
export type Kubectl = (args: readonly string[], input?: string) => Promise<string>;

export async function kubectlFor(kubernetes: KubernetesServer): Promise<Kubectl> {
  const config = await kubernetes.kubeconfig(adminToken);
  return async (args, input = '') => {
    const child = spawn('kubectl', ['--kubeconfig', config, ...args]);
    child.stdin.end(input);
    const ended = once(child, 'close');
    const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
    const [code] = await ended;
    if (code !== 0) throw new Error(`kubectl ${args.join(' ')}: ${stderr}`);
    return stdout;
  };
}
