/** @fastify/http-proxy in front of the upstream. */
import proxy from '@fastify/http-proxy';
import { fastify } from 'fastify';

const app = fastify({ bodyLimit: Number.MAX_SAFE_INTEGER });
await app.register(proxy, {
  upstream: process.env['UPSTREAM'] ?? '',
  prefix: '/proxied',
  rewritePrefix: '/',
  websocket: true,
});
await app.listen({ port: Number(process.env['PORT']), host: '127.0.0.1' });
