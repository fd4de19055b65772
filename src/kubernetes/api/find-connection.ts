/** Finds the API server and the credentials for it: those of the pod, or those of a kubeconfig file. */
import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { delimiter, join } from 'node:path';
import { codeOf, messageOf } from '#foundation';
import type { Connection } from './connection.ts';
import { kubeconfigConnection } from './kubeconfig.ts';

export interface ConnectionOptions {
  /** The variables KUBECONFIG, KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT and HOME. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Where Kubernetes puts the files of the service account. */
  readonly serviceAccountDirectory?: string | undefined;
}

/** The path is the same in every pod. */
const podDirectory = '/var/run/secrets/kubernetes.io/serviceaccount';

/** KUBECONFIG comes first, because somebody has set it on purpose. Rejects with a message for the user. */
export async function findConnection(options: ConnectionOptions): Promise<Connection> {
  const { environment, serviceAccountDirectory = podDirectory } = options;
  const { KUBECONFIG = '', KUBERNETES_SERVICE_HOST = '', HOME = '' } = environment;
  if (KUBECONFIG !== '') return kubeconfigConnection(KUBECONFIG.split(delimiter).filter((file) => file !== ''));
  if (KUBERNETES_SERVICE_HOST !== '') return podConnection(environment, serviceAccountDirectory);
  return kubeconfigConnection([join(HOME, '.kube/config')]);
}

async function podConnection(environment: ConnectionOptions['environment'], directory: string): Promise<Connection> {
  const { KUBERNETES_SERVICE_HOST: host = '', KUBERNETES_SERVICE_PORT: port = '443' } = environment;
  const read = (name: string) => readPodFile(join(directory, name));
  const credentials = async () => ({
    token: (await read('token')).trim(),
    ca: await read('ca.crt'),
    rejectUnauthorized: true,
  });
  await credentials();
  return {
    url: `https://${isIP(host) === 6 ? `[${host}]` : host}:${port}`,
    namespace: (await read('namespace')).trim(),
    origin: 'the service account of this pod',
    credentials,
  };
}

async function readPodFile(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (cause) {
    const why = codeOf(cause) === 'ENOENT' ? 'does not exist' : `cannot be read: ${messageOf(cause)}`;
    throw new Error(
      `${file} ${why}: KUBERNETES_SERVICE_HOST is set, so this is a pod, and it needs its service account. ` +
        'Remove automountServiceAccountToken: false, or set KUBECONFIG.',
      { cause },
    );
  }
}
