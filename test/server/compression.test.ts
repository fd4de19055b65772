/** Compression of what frontdesk itself serves, and of the services of a host app. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import Koa from 'koa';
import type { FrontdeskOptions } from '../../src/index.ts';
import { open as openResponse, receive } from '../support/decoding-client.ts';
import { desksOf, mappingRecord } from '../support/desks.ts';
import { isInstalled } from '../support/programs/installed.ts';
import { seriesOf } from '../support/scrape.ts';
import { testServers } from '../support/serve.ts';

const servers = testServers();
const openDesk = desksOf(servers);
const demo = { authorization: `Basic ${btoa('demo:demo')}` };
const accepts = { 'accept-encoding': 'gzip', ...demo };
const tickets = new Koa().use((ctx) => void Object.assign(ctx, { body: 'a ticket '.repeat(1000) }));

async function serve(options: FrontdeskOptions = {}): Promise<string> {
  const desk = await openDesk(options);
  return (await desk.listen()).gateway.url;
}

describe('what frontdesk serves', () => {
  const html = 'text/html';
  const paths = [
    ['/v1/hotels/'],
    ['/v1/hotels/', html],
    ['/v1/hotels/openapi.json'],
    ['/v1/hotels/docs/', html],
    ['/v1/hotels/docs/docs.js'],
    ['/v1/hotels/docs/docs.css'],
    ['/gateway/v0/diag/diagnostics.json'],
    ['/gateway/v0/diag/diagnostics.js'],
    ['/gateway/v0/metrics'],
    ['/gateway/v0/problems/', html],
    ['/', html],
  ] as const;

  it('is compressed, with a strong tag for each coding', async () => {
    const url = await serve();
    for (const [path, accept = '*/*'] of paths) {
      const plain = await receive(url + path, { ...demo, accept });
      const sent = { ...accepts, accept };
      const { status, headers, text, raw } = await receive(url + path, sent);
      assert.deepEqual([status, headers['content-encoding']], [200, 'gzip'], path);
      assert.match(headers.vary ?? '', /\bAccept-Encoding\b/, path);
      assert.equal(plain.headers.vary, headers.vary, path);
      assert.ok(raw.length < plain.raw.length, path);
      // Diagnostics and metrics change from one request to the next.
      if (headers.etag === undefined) continue;
      assert.equal(text, plain.text, path);
      assert.equal(headers.etag, plain.headers.etag?.replace(/"$/, '-gzip"'), path);
      const again = await receive(url + path, { ...sent, 'if-none-match': headers.etag });
      assert.deepEqual([again.status, again.headers.etag, again.headers.vary], [304, headers.etag, headers.vary], path);
    }
  });

  it('is not compressed with COMPRESS=false, or compress: false in the mapping', async () => {
    const url = await serve({ compress: false, adminPort: 0 });
    for (const [path, accept = '*/*'] of paths) {
      const { headers } = await receive(url + path, { ...accepts, accept });
      assert.equal(headers['content-encoding'], undefined, path);
      assert.doesNotMatch(headers.vary ?? '', /Accept-Encoding/, path);
    }
    const records = [mappingRecord('hotel', '/v1/hotels', 'hotel', { compress: false })];
    const uncompressed = await receive(`${await serve({ config: { records } })}/v1/hotels/`, accepts);
    assert.deepEqual([uncompressed.status, uncompressed.headers['content-encoding']], [200, undefined]);
  });

  it('is compressed by the process that serves it, and the gateway in front keeps its tags', async () => {
    const hotels = await serve({ only: ['hotel'] });
    const address = hotels.replace('http://', '');
    const gateway = await serve({ only: ['gateway', 'auth'], serviceAddresses: { hotel: address } });
    const { headers, text } = await receive(`${gateway}/v1/hotels/`, accepts);
    assert.equal(headers['content-encoding'], 'gzip');
    assert.match(headers.etag ?? '', /^"[^"]+-gzip"$/);
    assert.equal(JSON.parse(text).offset, 0);
    const again = await receive(`${gateway}/v1/hotels/`, { ...accepts, 'if-none-match': headers.etag });
    assert.deepEqual([again.status, again.headers.etag], [304, headers.etag]);
  });

  it('can be changed with the tag of a compressed response', async () => {
    const url = `${await serve()}/v1/hotels/bookings/`;
    const { text: list } = await receive(url, accepts);
    const [{ id }] = JSON.parse(list).items;
    const { headers } = await receive(url + id, accepts);
    // The tag that a longer booking would have.
    const tag = headers.etag?.replace(/(?:-gzip)?"$/, '-gzip"');
    const change = { ...accepts, 'if-match': tag, 'content-type': 'application/merge-patch+json' };
    const { status, text } = await receive(url + id, change, 'PATCH', JSON.stringify({ status: 'cancelled' }));
    assert.deepEqual([status, JSON.parse(text).status], [200, 'cancelled'], text);
  });

  it('is counted in the metrics, and compressed on the admin port', async () => {
    const desk = await openDesk({ adminPort: 0 });
    const { gateway, admin } = await desk.listen();
    const { raw } = await receive(`${gateway.url}/v1/hotels/`, accepts);
    const plain = await receive(`${gateway.url}/v1/hotels/`, demo);
    const { headers, text } = await receive(`${admin.url}/metrics`, accepts);
    assert.equal(headers['content-encoding'], 'gzip');
    const series = seriesOf(text);
    assert.equal(series['frontdesk_compressed_responses_total gzip'], 1);
    assert.equal(series['frontdesk_compressed_responses_total br'], 0);
    assert.equal(series['frontdesk_compression_saved_bytes_total'], plain.raw.length - raw.length);
  });

  it('is decoded by curl --compressed', async function () {
    if (!isInstalled('curl')) this.skip();
    const url = await serve();
    for (const path of ['/v1/hotels/', '/v1/hotels/docs/docs.js']) {
      const { stdout } = await promisify(execFile)(
        'curl',
        ['-s', '--compressed', '-u', 'demo:demo', '-w', '\n%{size_download}', url + path],
        { maxBuffer: 16 * 1024 * 1024 },
      );
      const [size = ''] = stdout.match(/\d+$/) ?? [];
      const { text } = await receive(url + path, demo);
      assert.equal(stdout.slice(0, -size.length - 1), text);
      assert.ok(Number(size) < text.length / 2, size);
    }
  });

  it('reaches a client that leaves in the middle without an error', async () => {
    const url = await serve();
    const response = await openResponse(`${url}/v1/hotels/docs/docs.js`, accepts);
    response.destroy();
    assert.equal((await receive(`${url}/v1/hotels/docs/docs.js`, accepts)).status, 200);
  });
});

describe('a service over HTTP', () => {
  it('is not compressed by default', async () => {
    const upstream = await servers.http(
      (_req, res) => void res.setHeader('Content-Type', 'text/plain').end('x'.repeat(9000)),
    );
    const records = [mappingRecord('far', '/far', upstream.origin)];
    const { status, headers } = await receive(`${await serve({ demo: false, config: { records } })}/far`, accepts);
    assert.deepEqual([status, headers['content-encoding'], headers.vary], [200, undefined, undefined]);
  });
});

describe('a service of a host app', () => {
  for (const [compress, coding] of [
    [undefined, undefined],
    [true, 'gzip'],
  ] as const)
    it(`with compress: ${compress} has the coding ${coding ?? 'none'}`, async () => {
      const records = [mappingRecord('tickets', '/tickets', 'tickets', compress === undefined ? {} : { compress })];
      const url = await serve({ demo: false, config: { records }, services: { tickets } });
      const { status, headers, text } = await receive(`${url}/tickets`, accepts);
      assert.deepEqual([status, headers['content-encoding'], text.length], [200, coding, 9000]);
    });
});

describe('the gateway', () => {
  it('explains and shows in the diagnostics which routes are compressed', async () => {
    const records = [
      mappingRecord('tickets', '/tickets', 'tickets', { compress: true }),
      mappingRecord('plain', '/plain', 'tickets'),
    ];
    const desk = await openDesk({ demo: false, config: { records }, services: { tickets } });
    const explained = async (path: string) => (await desk.explain({ method: 'GET', url: path })).target?.compressed;
    assert.deepEqual([await explained('/tickets'), await explained('/plain')], [true, false]);
  });
});
