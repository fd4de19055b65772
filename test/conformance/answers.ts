/** Whole answers, byte by byte, compared with those of one process: nothing but `Via` shows where a service runs. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:http';
import { copyConfig, desksOf } from '../support/desks.ts';
import { testServers } from '../support/serve.ts';
import { temporaryFiles } from '../support/temporary-files.ts';
import { eventually } from '../support/waiting.ts';
import type { OpenDesk } from './desk.ts';

interface Asked {
  readonly method?: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

const demo = { authorization: `Basic ${Buffer.from('demo:demo').toString('base64')}` };
const json = { ...demo, 'content-type': 'application/json' };
const bookings = '/v1/hotels/bookings/';
const booking = `${bookings}0b6f1c52-7d7e-4a57-9d43-5f0f6c1d2a01`;
const forwarded = { 'x-forwarded-host': 'evil.example', 'x-forwarded-proto': 'ftp', 'x-forwarded-prefix': '/evil' };
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
  { path: '/v1/hotels', headers: { ...demo, accept: 'image/png' } },
  { path: '/v1/hotels', headers: { ...demo, ...forwarded } },
  { path: '/v1/hotels/', headers: json, method: 'POST', body: '{}' },
  { path: '/v1/hotels/nowhere', headers: demo },
  { path: '/v1/hotels?limit=none', headers: demo },
  { path: '/v1/hotels?limit=2&offset=2&sort=-city&fields=id,city', headers: demo },
  { path: '/v1/hotels?after=start&limit=1', headers: demo },
  { path: '/v1/cars?q=BERLIN', headers: demo },
  { path: '/v1/hotels/bookings', headers: demo },
  { path: bookings, headers: demo },
  { path: '/v1/hotels/%62ookings/', headers: demo },
  { path: '/v1/hotels%2Fbookings', headers: demo },
  { path: `${bookings}..%2Fx`, headers: demo },
  { path: booking, headers: demo },
  { path: booking, headers: { ...demo, accept: 'application/yaml' } },
  { path: booking, headers: { ...demo, 'if-none-match': '*' } },
  { path: booking, headers: demo, method: 'DELETE' },
  { path: `${bookings}none`, headers: demo },
  { path: `${bookings}none`, headers: { ...demo, accept: 'application/yaml' } },
  { path: `${bookings}none`, headers: { ...demo, accept: 'application/problem+json' } },
  { path: bookings, headers: demo, method: 'PUT', body: '{}' },
  { path: bookings, headers: json, method: 'POST', body: '{}' },
  { path: bookings, headers: { ...demo, 'content-type': 'text/plain' }, method: 'POST', body: '{}' },
  { path: bookings, headers: json, method: 'POST', body: JSON.stringify(room) },
  { path: '/v1/hotels/openapi.json', headers: demo },
  { path: '/v1/hotels/docs/', headers: { ...demo, accept: 'text/html' } },
  { path: '/v1/' },
  { path: '/v1/messages' },
  { path: '/v1/messages', headers: forwarded },
  { path: '/v1/messages/1', headers: forwarded },
  { path: '/v1/accounts/guest/messages/?limit=1' },
  { path: '/v1/messages/' },
  { path: '/v1/messages/', headers: { accept: 'image/png' } },
  { path: '/v1/messages/999' },
  { path: '/v2/messages/1', headers: { accept: 'application/yaml' } },
  { path: '/v1/messages/1', method: 'DELETE' },
  { path: '/nowhere' },
  { path: '/gateway/v0/check_ready' },
  { path: '/gateway/v0/problems/not-found' },
];

export function answerCases(desk: OpenDesk): void {
  describe('whole answers', () => {
    const open = desksOf(testServers(after));
    const writeFiles = temporaryFiles();
    let reference: string;

    before(async () => {
      const { gateway } = await (await open({ config: await copyConfig(writeFiles) })).listen();
      reference = gateway?.url ?? '';
    });

    it('are those of one process', async () => {
      const { gatewayUrl } = desk();
      for (const url of [reference, gatewayUrl]) await untilLimitsAreCounted(url);
      for (const asked of requests) {
        const [expected, found] = [await ask(reference, asked), await ask(gatewayUrl, asked)];
        assert.deepEqual(found, expected, JSON.stringify(asked));
      }
    });

    it('are those of one process where logins have failed too often', async () => {
      assert.deepEqual(await throttled(desk().gatewayUrl), await throttled(reference));
    });
  });
}

/** The first 429 to one who guesses the password of a user that no other case uses. */
async function throttled(gatewayUrl: string): Promise<Answer> {
  const headers = { authorization: `Basic ${Buffer.from('guessed:wrong').toString('base64')}` };
  for (let guesses = 0; guesses < 40; guesses += 1) {
    const answer = await ask(gatewayUrl, { path: '/v1/hotels', headers });
    if (answer.status === 429) return answer;
  }
  return assert.fail('the guesser is never throttled');
}

/** A gateway that has no connection to its limiter yet lets requests pass uncounted. */
function untilLimitsAreCounted(gatewayUrl: string): Promise<unknown> {
  return eventually(async () => {
    const { headers } = await ask(gatewayUrl, { path: '/v1/hotels', headers: demo });
    assert.ok(headers.some((line) => line.startsWith('RateLimit:')));
  });
}

interface Answer {
  readonly status: number | undefined;
  /** In order of their names, spelt as they were sent. */
  readonly headers: readonly string[];
  readonly body: string;
}

async function ask(gatewayUrl: string, { method = 'GET', path, headers = {}, body }: Asked): Promise<Answer> {
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
const different = ['Content-Length', 'Date', 'ETag', 'Retry-After', 'X-Request-Id'];

function lineOf(name: string, value: string): readonly string[] {
  if (ignored.includes(name)) return [];
  return [different.includes(name) ? name : `${name}: ${value}`];
}

/** Without the address, the path of a mount, what is new in each answer, and dates: the demo's begin with the day of its start. */
function withoutPlace(text: string, gatewayUrl: string): string {
  const { origin, pathname } = new URL(gatewayUrl);
  return text
    .replaceAll(origin, '')
    .replaceAll(pathname === '/' ? '\0' : pathname, '')
    .replaceAll(/[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}/g, '<id>')
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '<time>')
    .replaceAll(/\b\d{4}-\d\d-\d\d\b/g, '<date>')
    .replaceAll(/\b[\dA-Z]{4}-[\dA-Z]{4}\b/g, '<reference>')
    .replaceAll(/;r=\d+;t=\d+/g, '');
}
