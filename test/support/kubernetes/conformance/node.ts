/** Plays the node of a cluster: a pod is a process of this machine, whose address only `pod-network.ts` knows. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { open } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { endProcess } from '../../programs/end-process.ts';
import { freePort } from '../../programs/free-port.ts';
import { replaceFile } from '../../temporary-files.ts';
import { eventually } from '../../waiting.ts';

export interface PodNode {
  /** The environment of a process that can call the pods, also those that start later. */
  readonly environment: Readonly<Record<string, string>>;
  /** Resolves to the pod's address when it accepts connections. */
  readonly run: (pod: PodOptions) => Promise<string>;
  readonly close: () => Promise<void>;
}

export interface PodOptions {
  readonly namespace: string;
  readonly name: string;
  readonly isGrpc: boolean;
}

/** The ports of a pod, by the variables that set the ports of its process. */
const variables = { HTTP_PORT: 3000, H2C_PORT: 3001, HTTPS_PORT: 8443 };

/** Every pod runs `program`, the backend of the conformance tests. Writes `<pod>.log` into `folder`. */
export function startNode(program: string, folder: string): PodNode {
  const portsFile = join(folder, 'ports.json');
  const ports: Record<string, number> = {};
  const children: ChildProcess[] = [];
  let count = 0;

  return {
    environment: {
      NODE_OPTIONS: `--import=${fileURLToPath(new URL('pod-network.ts', import.meta.url))}`,
      POD_PORTS: portsFile,
    },
    async run({ namespace, name, isGrpc }) {
      count += 1;
      const address = `10.244.0.${count}`;
      const env: Record<string, string> = {
        NAMESPACE: namespace,
        POD_NAME: name,
        ...(isGrpc && { GRPC_ECHO_SERVER: '1' }),
      };
      for (const [variable, port] of Object.entries(variables)) {
        const local = await freePort();
        ports[`${address}:${port}`] = local;
        env[variable] = String(local);
      }
      await replaceFile(portsFile, JSON.stringify(ports));
      const log = await open(join(folder, `${name}.log`), 'w');
      children.push(spawn(program, { env, stdio: ['ignore', log.fd, log.fd] }));
      await log.close();
      await eventually(() => acceptConnection(Number(env['HTTP_PORT'])));
      return address;
    },
    close: async () => void (await Promise.all(children.map((child) => endProcess(child, 'SIGKILL')))),
  };
}

async function acceptConnection(port: number): Promise<void> {
  const socket = connect(port, '127.0.0.1');
  await once(socket, 'connect');
  socket.destroy();
}
