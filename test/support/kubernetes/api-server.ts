/** Runs a real Kubernetes API server on its own etcd, without nodes or controllers, which a test can kill and freeze. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { endProcess, isRunning } from '../programs/end-process.ts';
import { freePort } from '../programs/free-port.ts';
import { isInstalled } from '../programs/installed.ts';
import { type TestServers, testServers } from '../serve.ts';
import { eventually } from '../waiting.ts';
import { makeCertificate } from '../wire/certificate.ts';
import { createApiClient, type KubernetesClient } from './client.ts';

export interface KubernetesServer extends KubernetesClient {
  readonly url: string;
  readonly port: number;
  /** The certificate that the server's certificate can be verified with, and its file. */
  readonly ca: string;
  readonly caFile: string;
  /** The certificate of the user `admin`, as files. */
  readonly clientCertificate: { readonly file: string; readonly keyFile: string };
  /** Writes a kubeconfig file whose current context is this user, and returns its path. */
  readonly kubeconfig: (token?: string, namespace?: string) => Promise<string>;
  /** Starts the server again with the objects that it had. Resolves when it is ready. */
  readonly start: () => Promise<void>;
  readonly kill: () => Promise<void>;
  /** Suspends the server: its connections stay open, but it does not respond. */
  readonly freeze: () => void;
  readonly thaw: () => void;
}

/** May do everything. */
export const adminToken = 'admin-token';
/** The user `frontdesk`, who may do nothing until a test grants it. */
export const readerToken = 'reader-token';

const tokens = `${adminToken},admin,admin,"system:masters"\n${readerToken},frontdesk,frontdesk,""\n`;
const programs = ['etcd', 'kube-apiserver', 'openssl'];

/** A `describe` that is pending if the programs are not installed. */
export function describeWithKubernetes(title: string, body: (this: Mocha.Suite) => void): void {
  describe(title, function describeInstalled() {
    const missing = programs.filter((program) => !isInstalled(program));
    if (missing.length === 0) body.call(this);
    else it(`needs ${missing.join(' and ')} on the PATH`);
  });
}

/** Takes two or three seconds. Start one in a `before` and share it; give each test a namespace with `createNamespace`. */
export async function startKubernetes(servers: TestServers): Promise<KubernetesServer> {
  const directory = await mkdtemp(join(tmpdir(), 'frontdesk-kubernetes-'));
  servers.later(() => rm(directory, { recursive: true, force: true }));
  const [[etcdPort, peerPort, port], certificates] = await Promise.all([
    Promise.all([freePort(), freePort(), freePort()]),
    makeCertificates(directory),
  ]);
  const etcd = runProgram('etcd', etcdOptions(directory, etcdPort, peerPort));
  servers.later(etcd.kill);

  const url = `https://127.0.0.1:${port}`;
  const client = createApiClient({ url, ca: certificates.server.cert, token: adminToken });
  servers.later(client.close);
  let server: RunningProgram | undefined;
  const kill = async () => server?.kill();
  servers.later(kill);

  async function start(): Promise<void> {
    await kill();
    const started = runProgram('kube-apiserver', serverOptions(directory, etcdPort, port));
    server = started;
    await eventually(async () => {
      if (started.failure() !== undefined) return;
      if ((await client.request('GET', '/readyz')).status !== 200) throw new Error('the API server is not ready');
      await client.get('v1', 'Namespace', 'default');
    }, 20);
    const failure = started.failure();
    if (failure !== undefined) throw new Error(`kube-apiserver ended: ${failure}`);
  }
  await start();

  return Object.freeze({
    ...client,
    url,
    port,
    ca: certificates.server.cert,
    caFile: certificates.server.file,
    clientCertificate: certificates.client,
    async kubeconfig(token = readerToken, namespace?: string) {
      const file = join(directory, `kubeconfig-${randomUUID()}`);
      await writeFile(file, JSON.stringify(kubeconfigOf({ url, caFile: certificates.server.file, token, namespace })));
      return file;
    },
    start,
    kill,
    freeze: () => server?.signal('SIGSTOP'),
    thaw: () => server?.signal('SIGCONT'),
  });
}

interface KubeconfigParts {
  readonly url: string;
  readonly caFile: string;
  readonly token: string;
  readonly namespace?: string | undefined;
}

export function kubeconfigOf({ url, caFile, token, namespace }: KubeconfigParts): object {
  return {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'test',
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'test', ...(namespace && { namespace }) } }],
    clusters: [{ name: 'test', cluster: { server: url, 'certificate-authority': caFile } }],
    users: [{ name: 'test', user: { token } }],
  };
}

async function makeCertificates(directory: string) {
  await promisify(execFile)('openssl', ['genrsa', '-out', join(directory, 'sa.key'), '2048']);
  await writeFile(join(directory, 'tokens.csv'), tokens);
  const [server, client] = await Promise.all([
    makeCertificate(directory, 'IP:127.0.0.1,DNS:localhost,DNS:kubernetes.default.svc', {
      files: ['ca.pem', 'ca.key'],
    }),
    makeCertificate(directory, '', { files: ['user.pem', 'user.key'], subject: '/O=system:masters/CN=admin' }),
  ]);
  if (server === undefined || client === undefined) throw new Error('openssl is not installed');
  return { server, client };
}

function etcdOptions(directory: string, port: number, peerPort: number): readonly string[] {
  const [url, peerUrl] = [`http://127.0.0.1:${port}`, `http://127.0.0.1:${peerPort}`];
  return [
    `--data-dir=${join(directory, 'etcd')}`,
    ...[`--listen-client-urls=${url}`, `--advertise-client-urls=${url}`],
    ...[`--listen-peer-urls=${peerUrl}`, `--initial-advertise-peer-urls=${peerUrl}`],
    `--initial-cluster=default=${peerUrl}`,
    '--log-level=error',
  ];
}

function serverOptions(directory: string, etcdPort: number, port: number): readonly string[] {
  const file = (name: string) => join(directory, name);
  return [
    `--etcd-servers=http://127.0.0.1:${etcdPort}`,
    ...['--bind-address=127.0.0.1', '--advertise-address=127.0.0.1', `--secure-port=${port}`],
    ...[`--tls-cert-file=${file('ca.pem')}`, `--tls-private-key-file=${file('ca.key')}`, `--cert-dir=${directory}`],
    ...[`--token-auth-file=${file('tokens.csv')}`, `--client-ca-file=${file('user.pem')}`, '--authorization-mode=RBAC'],
    ...['--service-account-issuer=https://localhost', '--disable-admission-plugins=ServiceAccount'],
    ...[`--service-account-key-file=${file('sa.key')}`, `--service-account-signing-key-file=${file('sa.key')}`],
    '--service-cluster-ip-range=10.0.0.0/16',
    '--endpoint-reconciler-type=none',
  ];
}

interface RunningProgram {
  /** What it wrote last if it has ended by itself. */
  readonly failure: () => string | undefined;
  readonly signal: (name: NodeJS.Signals) => void;
  /** With SIGKILL, because after SIGTERM the API server waits a minute for open watches. */
  readonly kill: () => Promise<void>;
}

function runProgram(command: string, args: readonly string[]): RunningProgram {
  const child: ChildProcess = spawn(command, args, { stdio: ['ignore', 'ignore', 'pipe'] });
  let errors = '';
  child.stderr?.on('data', (chunk: Buffer) => {
    errors = `${errors}${chunk}`.slice(-4000);
  });
  return {
    failure: () => (isRunning(child) ? undefined : errors),
    signal: (name) => void child.kill(name),
    kill: () => endProcess(child, 'SIGKILL'),
  };
}

/** Starts an API server for the tests of a suite, and creates a namespace for each of them, which it hands over. */
export function eachInNamespace(receive: (kubernetes: KubernetesServer, namespace: string) => void): void {
  const servers = testServers(after);
  let kubernetes: KubernetesServer;
  before(async () => {
    kubernetes = await startKubernetes(servers);
  });
  beforeEach(async () => receive(kubernetes, await kubernetes.createNamespace()));
}
