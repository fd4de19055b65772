/** @fastify/http-proxy in front of the upstream, in one process or in several that share the port. */
import cluster from 'node:cluster';
import proxy from '@fastify/http-proxy';
import { fastify } from 'fastify';

const processes = Number(process.env['PROCESSES'] ?? 1);

if (cluster.isPrimary && processes > 1) {
  for (let count = 0; count < processes; count += 1) cluster.fork();
} else {
  const app = fastify({ bodyLimit: Number.MAX_SAFE_INTEGER });
  await app.register(proxy, {
    upstream: process.env['UPSTREAM'] ?? '',
    prefix: '/proxied',
    rewritePrefix: '/',
    websocket: true,
  });
  await app.listen({ port: Number(process.env['PORT']), host: '127.0.0.1' });
}
