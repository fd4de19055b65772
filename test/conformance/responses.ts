/** Complete responses, compared with those of a single process: only `Via` shows where a service runs. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:http';
import { copyConfig, desksOf } from '../support/desks.ts';
import { testServers } from '../support/serve.ts';
import { temporaryFiles } from '../support/temporary-files.ts';
import { openHttp2 } from '../support/wire/http2-client.ts';
import type { Desk, OpenDesk } from './desk.ts';

interface RequestCase {
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

const requests: readonly RequestCase[] = [
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
  { path: '/v1/messages%2F1', headers: demo },
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

export function responseCases(desk: OpenDesk): void {
  describe('complete responses', () => {
    const open = desksOf(testServers(after));
    const writeFiles = temporaryFiles();
    let reference: string;

    before(async () => {
      const { gateway } = await (await open({ config: await copyConfig(writeFiles) })).listen();
      reference = gateway.url;
    });

    it('are the same as those of a single process', async () => {
      const { gatewayUrl, ...client } = desk();
      for (const requestCase of requests) {
        const [expected, found] = [await send(reference, requestCase), await send(gatewayUrl, requestCase, client)];
        assert.deepEqual(found, client.http2 ? inLowerCase(expected) : expected, JSON.stringify(requestCase));
      }
    });

    it('are the same as those of a single process after too many failed logins', async () => {
      const { gatewayUrl, ...client } = desk();
      const expected = await throttled(reference);
      assert.deepEqual(await throttled(gatewayUrl, client), client.http2 ? inLowerCase(expected) : expected);
    });
  });
}

/** Guesses the password of a user that no other test uses, and returns the first 429. */
async function throttled(gatewayUrl: string, client: Client = {}): Promise<CapturedResponse> {
  const headers = { authorization: `Basic ${Buffer.from('guessed:wrong').toString('base64')}` };
  for (let guesses = 0; guesses < 40; guesses += 1) {
    const response = await send(gatewayUrl, { path: '/v1/hotels', headers }, client);
    if (response.status === 429) return response;
  }
  return assert.fail('the guesser is never throttled');
}

interface CapturedResponse {
  readonly status: number | undefined;
  /** Sorted by name, in the original spelling. */
  readonly headers: readonly string[];
  readonly body: string;
}

type Client = Pick<Desk, 'http2' | 'ca'>;

async function send(
  gatewayUrl: string,
  requestCase: RequestCase,
  { http2 = false, ca }: Client = {},
): Promise<CapturedResponse> {
  const { status, rawHeaders, text } = await (http2
    ? sendHttp2(gatewayUrl, requestCase, ca)
    : sendHttp1(gatewayUrl, requestCase));
  const lines: string[] = [];
  for (let index = 0; index < rawHeaders.length; index += 2)
    lines.push(...lineOf(rawHeaders[index] ?? '', masked(rawHeaders[index + 1] ?? '', gatewayUrl)));
  return { status, headers: lines.sort(), body: masked(text, gatewayUrl) };
}

async function sendHttp1(gatewayUrl: string, { method = 'GET', path, headers = {}, body }: RequestCase) {
  const sent = request(gatewayUrl + path, { method, headers, agent: false }).end(body);
  const [response] = await once(sent, 'response');
  const text: string = (await response.setEncoding('utf8').toArray()).join('');
  return { status: response.statusCode as number, rawHeaders: response.rawHeaders as string[], text };
}

async function sendHttp2(gatewayUrl: string, { method = 'GET', path, headers = {}, body }: RequestCase, ca?: string) {
  const client = openHttp2(gatewayUrl, { ca });
  const { pathname, search } = new URL(gatewayUrl + path);
  const response = await client.send({ ':method': method, ':path': pathname + search, ...headers }, body);
  client.session.destroy();
  return { ...response, text: Buffer.from(response.body, 'latin1').toString() };
}

/** HTTP/2 has no names in another case (RFC 9113 section 8.2.1). */
function inLowerCase({ headers, ...response }: CapturedResponse): CapturedResponse {
  return { ...response, headers: headers.map((line) => line.replace(/^[^:]+/, (name) => name.toLowerCase())).sort() };
}

/** Headers that belong to the connection, and `Via`. */
const ignored = ['connection', 'keep-alive', 'via'];
/** Headers whose values depend on the time, on ids or on the length of the address. */
const varying = ['content-length', 'date', 'etag', 'retry-after', 'x-request-id'];

function lineOf(name: string, value: string): readonly string[] {
  if (ignored.includes(name.toLowerCase())) return [];
  return [varying.includes(name.toLowerCase()) ? name : `${name}: ${value}`];
}

/** Masks the address, the mount path, generated ids and times, and dates: those of the demo depend on the day. */
function masked(text: string, gatewayUrl: string): string {
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
