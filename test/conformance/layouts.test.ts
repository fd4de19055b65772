/** Whole answers, byte by byte, compared across the layouts: nothing but `Via` shows where a service runs. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createFrontdesk } from 'frontdesk';
import Koa from 'koa';
import mount from 'koa-mount';
import { startServer, startSplit } from '../support/programs/frontdesk-process.ts';
import { eventually } from '../support/waiting.ts';

interface Asked {
  readonly method?: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

const demo = { authorization: `Basic ${Buffer.from('demo:demo').toString('base64')}` };
const json = { ...demo, 'content-type': 'application/json' };
const bookings = '/v1/hotels/bookings/';
const room = { hotel_id: 'bdd640fb-0667-4ad1-9c80-317fa3b1799d', check_in: '2031-05-12', check_out: '2031-05-15' };

const requests: readonly Asked[] = [
  { path: '/v1/hotels' },
  { path: '/v1/hotels', headers: { accept: 'text/html' } },
  { path: '/v1/hotels', headers: { authorization: 'Basic eA==' } },
  { path: '/v1/hotels', headers: demo },
  { path: '/v1/hotels', headers: { ...demo, accept: 'text/html' } },
  { path: '/v1/hotels', headers: { ...demo, 'x-gateway-test-allow': 'layouts' } },
  { path: '/v1/hotels', headers: demo, method: 'HEAD' },
  { path: '/v1/hotels', headers: demo, method: 'OPTIONS' },
  { path: '/v1/hotels?limit=none', headers: demo },
  { path: '/v1/hotels/bookings', headers: demo },
  { path: bookings, headers: demo },
  { path: `${bookings}0b6f1c52-7d7e-4a57-9d43-5f0f6c1d2a01`, headers: demo },
  { path: `${bookings}none`, headers: demo },
  { path: `${bookings}none`, headers: { ...demo, accept: 'application/problem+json' } },
  { path: bookings, headers: demo, method: 'PUT', body: '{}' },
  { path: bookings, headers: json, method: 'POST', body: '{}' },
  { path: bookings, headers: { ...demo, 'content-type': 'text/plain' }, method: 'POST', body: '{}' },
  { path: bookings, headers: json, method: 'POST', body: JSON.stringify(room) },
  { path: '/v1/hotels/openapi.json', headers: demo },
  { path: '/v1/hotels/docs/', headers: { ...demo, accept: 'text/html' } },
  { path: '/v1/' },
  { path: '/v1/messages' },
  { path: '/v1/messages/' },
  { path: '/v1/messages/', headers: { accept: 'image/png' } },
  { path: '/v1/messages/999' },
  { path: '/v2/messages/1', headers: { accept: 'application/yaml' } },
  { path: '/v1/messages/1', method: 'DELETE' },
  { path: '/nowhere' },
  { path: '/gateway/v0/check_ready' },
  { path: '/gateway/v0/problems/not-found' },
];

interface Layout {
  readonly gatewayUrl: string;
  readonly close: () => Promise<unknown>;
}

describe('the answers of', () => {
  let expected: readonly Answer[];

  before(async function () {
    this.timeout(60_000);
    expected = await answersOf(openOneProcess);
  });

  const layouts = { 'separate processes': openSplit, 'a desk mounted in another Koa app': openMounted };
  for (const [name, open] of Object.entries(layouts)) {
    it(`${name} are those of one process`, async function () {
      this.timeout(60_000);
      const found = await answersOf(open);
      for (const [index, asked] of requests.entries())
        assert.deepEqual(found[index], expected[index], JSON.stringify(asked));
    });
  }
});

async function answersOf(open: () => Promise<Layout>): Promise<readonly Answer[]> {
  const layout = await open();
  try {
    await untilLimitsAreCounted(layout);
    const answers: Answer[] = [];
    for (const asked of requests) answers.push(await ask(layout, asked));
    return answers;
  } finally {
    await layout.close();
  }
}

async function openOneProcess(): Promise<Layout> {
  const { gatewayUrl, stop } = await startServer(['--demo']);
  return { gatewayUrl, close: stop };
}

async function openSplit(): Promise<Layout> {
  const { gatewayUrl, stop } = await startSplit();
  return { gatewayUrl, close: stop };
}

async function openMounted(): Promise<Layout> {
  const desk = await createFrontdesk({ config: './config', databaseUrl: 'sqlite::memory:', demo: true });
  const server = createServer(new Koa().use(mount('/travel', desk.middleware)).callback());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    gatewayUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/travel`,
    async close() {
      server.close();
      server.closeAllConnections();
      await desk.close();
    },
  };
}

/** A gateway that has no connection to its limiter yet lets requests pass uncounted. */
function untilLimitsAreCounted(layout: Layout): Promise<unknown> {
  return eventually(async () => {
    const { headers } = await ask(layout, { path: '/v1/hotels', headers: demo });
    assert.ok(headers.some((line) => line.startsWith('RateLimit:')));
  });
}

interface Answer {
  readonly status: number | undefined;
  /** In order of their names, spelt as they were sent. */
  readonly headers: readonly string[];
  readonly body: string;
}

async function ask({ gatewayUrl }: Layout, { method = 'GET', path, headers = {}, body }: Asked): Promise<Answer> {
  const sent = request(gatewayUrl + path, { method, headers, agent: false }).end(body);
  const [response] = await once(sent, 'response');
  const text: string = (await response.setEncoding('utf8').toArray()).join('');
  const lines: string[] = [];
  for (let index = 0; index < response.rawHeaders.length; index += 2)
    lines.push(...lineOf(response.rawHeaders[index], withoutPlace(response.rawHeaders[index + 1], gatewayUrl)));
  return { status: response.statusCode, headers: lines.sort(), body: withoutPlace(text, gatewayUrl) };
}

/** Of the connection, whose host's they are; and `Via`. */
const ignored = ['Connection', 'Keep-Alive', 'Via'];
/** They depend on the time, on ids, or on how long the address is. */
const different = ['Content-Length', 'Date', 'ETag', 'X-Request-Id'];

function lineOf(name: string, value: string): readonly string[] {
  if (ignored.includes(name)) return [];
  return [different.includes(name) ? name : `${name}: ${value}`];
}

/** Without the address, the path of a mount, and what is new in each answer. */
function withoutPlace(text: string, gatewayUrl: string): string {
  const { origin, pathname } = new URL(gatewayUrl);
  return text
    .replaceAll(origin, '')
    .replaceAll(pathname === '/' ? '\0' : pathname, '')
    .replaceAll(/[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}/g, '<id>')
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '<time>')
    .replaceAll(/\b[\dA-Z]{4}-[\dA-Z]{4}\b/g, '<reference>')
    .replaceAll(/;r=\d+;t=\d+/g, '');
}
