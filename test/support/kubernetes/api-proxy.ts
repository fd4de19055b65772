/** A proxy in front of the API server that changes requests, answers some itself, and shows what passed through it. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestServers } from '../serve.ts';
import { makeCertificate } from '../wire/certificate.ts';
import { adminToken, type KubernetesServer, kubeconfigOf } from './api-server.ts';

export interface ApiProxy {
  readonly kubeconfig: string;
  /** Returns the path to ask for instead. Replace it in a test. */
  rewrite: (path: string) => string;
  /** Returns true if it answers a request itself. Replace it in a test. */
  answer: (path: string, response: ServerResponse) => boolean;
  /** The paths that were asked for. */
  readonly paths: string[];
  /** What the API server has sent in response to watches. */
  readonly watched: () => string;
  /** Breaks all connections of clients. */
  readonly cut: () => void;
}

/** `namespace` and `token` are those of the context. */
export async function startApiProxy(
  servers: TestServers,
  kubernetes: KubernetesServer,
  namespace: string,
  token = adminToken,
): Promise<ApiProxy> {
  const directory = await mkdtemp(join(tmpdir(), 'frontdesk-api-proxy-'));
  servers.later(() => rm(directory, { recursive: true }));
  const certificate = await makeCertificate(directory, 'IP:127.0.0.1');
  if (certificate === undefined) throw new Error('openssl is not installed');
  const open = new Set<IncomingMessage>();
  const paths: string[] = [];
  let watched = '';

  const server = createServer({ cert: certificate.cert, key: certificate.key }, (incoming, response) => {
    const { url: path = '', method, headers } = incoming;
    paths.push(path);
    open.add(incoming);
    response.once('close', () => open.delete(incoming));
    if (proxy.answer(path, response)) return;
    const target = `${kubernetes.url}${proxy.rewrite(path)}`;
    const outgoing = request(target, { method, headers, rejectUnauthorized: false, agent: false }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      response.flushHeaders();
      answer.on('data', (chunk: Buffer) => {
        if (path.includes('watch=1')) watched += chunk;
      });
      answer.on('error', () => response.destroy());
      answer.pipe(response);
    });
    outgoing.on('error', () => response.destroy());
    response.once('close', () => outgoing.destroy());
    incoming.pipe(outgoing);
  });
  const { port } = await servers.listen(server);
  const kubeconfig = join(directory, 'kubeconfig');
  const parts = { url: `https://127.0.0.1:${port}`, caFile: certificate.file, token, namespace };
  await writeFile(kubeconfig, JSON.stringify(kubeconfigOf(parts)));
  const proxy: ApiProxy = {
    kubeconfig,
    rewrite: (path) => path,
    answer: () => false,
    paths,
    watched: () => watched,
    cut: () => {
      for (const { socket } of open) socket.destroy();
    },
  };
  return proxy;
}
