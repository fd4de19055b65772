/** Desks mounted in another Koa app that has its own error handler and body parser. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { createServer as createHttp2Server } from 'node:http2';
import type { AddressInfo, Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { createFrontdesk, type Frontdesk } from 'frontdesk';
import Koa, { type Context, type Next } from 'koa';
import mount from 'koa-mount';
import request from 'supertest';
import { copyConfig } from '../support/desks.ts';
import { bareProblem } from '../support/error-body.ts';
import { temporaryFiles } from '../support/temporary-files.ts';
import { conformance } from './conformance.ts';

interface Host {
  readonly url: string;
  readonly errors: readonly unknown[];
  readonly close: () => Promise<void>;
}

conformance(
  'mounted in another Koa app',
  async (config) => {
    const { url, close } = await startHost(config);
    return { gatewayUrl: `${url}/travel`, authUrl: '', ratelimitUrl: '', ratelimitHttpUrl: '', close };
  },
  { listeners: ['mounted'] },
);

conformance(
  'mounted in another Koa app on node:http2',
  async (config) => {
    const { url, close } = await startHost(config, { http2: true });
    const gatewayUrl = `${url}/travel`;
    return { gatewayUrl, authUrl: '', ratelimitUrl: '', ratelimitHttpUrl: '', http2: true, close };
  },
  { listeners: ['mounted'] },
);

describe('a host with two desks', () => {
  const writeFiles = temporaryFiles();
  let config: string;
  let host: Host;

  before(async () => {
    config = await copyConfig(writeFiles);
    host = await startHost(config);
  });

  after(() => host.close());

  it('serves its own paths, and its own error page for its own errors', async () => {
    await request(host.url).get('/').expect(200, 'host');
    await request(host.url).get('/broken').expect(500, 'host error: broken');
    await request(host.url).get('/travelx').expect(404, 'Not Found');
  });

  it('is not notified of client errors in a desk', async () => {
    await request(host.url).get('/travel/nowhere').expect(bareProblem('not-found'));
    await request(host.url).get('/travel/v1/hotels').expect(401);
    await request(host.url).get('/travel/v1/messages/?limit=x').expect(400);
    assert.deepEqual(host.errors, []);
  });

  it('gives each desk its own counters', async () => {
    const send = (desk: string) => request(host.url).get(`${desk}/v1/hotels`).auth('demo', 'demo');
    await send('/travel').set('x-gateway-test-allow', 'same').expect(200);
    const { headers } = await send('/other').set('x-gateway-test-allow', 'same').expect(200);
    assert.match(headers['ratelimit'] ?? '', /"x-gateway-test-allow";r=9/);
  });

  it('gives each desk its own addresses', async () => {
    for (const desk of ['/travel', '/other']) {
      const { body } = await request(host.url).get(`${desk}/v1/messages/1`).expect(200);
      assert.equal(body.url, `${host.url}${desk}/v1/messages/1`);
      await request(host.url).get(`${desk}/v1/messages`).expect('Location', `${desk}/v1/messages/`);
    }
  });

  it('gives each desk its own diagnostics', async () => {
    const allowed = async (desk: string) => {
      const { body } = await request(host.url).get(`${desk}/gateway/v0/diag/`).auth('demo', 'demo').expect(200);
      return body.auth.allowed;
    };
    const before = await allowed('/other');
    await allowed('/travel');
    assert.equal(await allowed('/other'), before + 1);
  });

  it('keeps serving one desk when the other is closed', async () => {
    const { url, close, first } = await startHost(config);
    await first.close();
    await request(url).get('/other/v1/hotels').auth('demo', 'demo').expect(200);
    await close();
  });
});

async function startHost(
  config: string,
  { http2 = false }: { readonly http2?: boolean } = {},
): Promise<Host & { readonly first: Frontdesk }> {
  const options = { config, databaseUrl: 'sqlite::memory:', demo: true, landingPage: true };
  const [first, second] = await Promise.all([createFrontdesk(options), createFrontdesk(options)]);
  const errors: unknown[] = [];
  const app = new Koa().on('error', (error) => void errors.push(error));
  app.use(hostErrors);
  app.use(hostBodyParser);
  app.use(mount('/travel', first.middleware));
  app.use(mount('/other', second.middleware));
  app.use(hostRoutes);
  const server = http2 ? createHttp2Server(app.callback()) : createServer(app.callback());
  const sockets: Socket[] = [];
  server.on('connection', (socket: Socket) => void sockets.push(socket));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    errors,
    first,
    async close() {
      server.close();
      for (const socket of sockets) socket.destroy();
      await Promise.all([first.close(), second.close()]);
    },
  };
}

async function hostErrors(ctx: Context, next: Next): Promise<void> {
  try {
    await next();
  } catch (error) {
    ctx.status = 500;
    ctx.body = `host error: ${error instanceof Error ? error.message : error}`;
  }
}

/** Reads the whole body into `rawBody`, like koa-bodyparser. */
async function hostBodyParser(ctx: Context, next: Next): Promise<void> {
  Object.assign(ctx.request, { rawBody: await text(ctx.req) });
  await next();
}

function hostRoutes(ctx: Context, next: Next): Promise<void> | undefined {
  if (ctx.path === '/broken') throw new Error('broken');
  if (ctx.path !== '/') return next();
  ctx.body = 'host';
  return undefined;
}
