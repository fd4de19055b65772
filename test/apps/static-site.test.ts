/** A static site: Caddy's responses through the gateway are the same as its direct ones. */
import assert from 'node:assert/strict';
import { type IncomingMessage, request } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { freePort } from '../support/programs/free-port.ts';
import { describeWith } from '../support/programs/installed.ts';
import { caddy, startProxy } from '../support/programs/proxy-process.ts';
import { testServers } from '../support/serve.ts';
import { temporaryFiles } from '../support/temporary-files.ts';
import { recipeRecord, startFront } from './front.ts';

const text = 'a line of a file that compresses well\n'.repeat(1000);

const requests: readonly (readonly [what: string, path: string, headers: Record<string, string>, status: number])[] = [
  ['a whole file', '/text.txt', {}, 200],
  ['a compressed file', '/text.txt', { 'accept-encoding': 'gzip' }, 200],
  ['another compression', '/text.txt', { 'accept-encoding': 'zstd' }, 200],
  ['a range', '/text.txt', { range: 'bytes=5-9' }, 206],
  ['a suffix range', '/text.txt', { range: 'bytes=-10' }, 206],
  ['two ranges', '/text.txt', { range: 'bytes=0-4,10-14' }, 206],
  ['a range beyond the end', '/text.txt', { range: 'bytes=999999-' }, 416],
  [
    'a file that has not changed',
    '/text.txt',
    { 'if-modified-since': new Date(Date.now() + 86_400_000).toUTCString() },
    304,
  ],
  ['a directory without its slash', '/directory', {}, 308],
  ['a missing file', '/none', {}, 404],
];

describeWith('caddy', 'a static site behind the gateway', () => {
  const servers = testServers(after);
  const writeFiles = temporaryFiles();
  let direct: number;
  let behind: number;

  before(async () => {
    const root = await writeFiles({ 'text.txt': text, 'directory/index.html': '<p>index</p>' });
    direct = await freePort();
    const site = `http://:${direct} {\nbind 127.0.0.1\nroot * ${root}\nencode zstd gzip\nfile_server\n}`;
    const app = await startProxy(caddy, site, direct);
    servers.later(app.remove);
    const { port } = await startFront(servers, recipeRecord('npm', app, { host: 'static.example' }));
    behind = port;
  });

  for (const [what, path, headers, status] of requests) {
    it(`has the same response for ${what}: ${status}`, async () => {
      const [expected, seen] = [await ask(direct, path, headers), await ask(behind, path, headers)];
      assert.equal(seen.status, status);
      assert.deepEqual(seen, expected);
    });
  }
});

/** Returns a response without hop-by-hop headers, and with a fixed name for the random boundary of multipart bodies. */
async function ask(port: number, path: string, headers: Readonly<Record<string, string>>) {
  const options = { port, path, headers: { host: 'static.example', ...headers }, host: '127.0.0.1', agent: false };
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    request(options, resolve).on('error', reject).end();
  });
  const body = (await buffer(response)).toString('latin1');
  const { date, via, connection, 'keep-alive': keptAlive, 'x-request-id': id, ...others } = response.headers;
  const [, boundary = 'none'] = /boundary=(\S+)/.exec(others['content-type'] ?? '') ?? [];
  const normalize = (value: string) => value.replaceAll(boundary, 'boundary');
  return {
    status: response.statusCode,
    headers: Object.fromEntries(Object.entries(others).map(([name, value]) => [name, normalize(String(value))])),
    body: normalize(body),
  };
}
