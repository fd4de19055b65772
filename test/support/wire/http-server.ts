/** Starts frontdesk's HTTP server on a free port with the default bounds. */
import { type HttpServer, type HttpServerOptions, serveHttp } from '#http';
import type { TestServers } from '../serve.ts';

export const httpLimits = Object.freeze({
  host: '127.0.0.1',
  port: 0,
  hostSetting: 'HOST',
  portSetting: 'PORT',
  headerBytesMax: 16_384,
  headerTimeoutMs: 10_000,
  requestTimeoutMs: 30_000,
  keepAliveTimeoutMs: 72_000,
  pipelineMax: 8,
  responseIdleTimeoutMs: 300_000,
});

/** Responds with `x` by default. Closes the server after the test. */
export async function startHttp(servers: TestServers, options: Partial<HttpServerOptions> = {}): Promise<HttpServer> {
  const server = await serveHttp({ ...httpLimits, handler: (_request, response) => response.end('x'), ...options });
  servers.later(() => server.close(0));
  return server;
}
