/** The port that redirects to HTTPS: which hosts it redirects to, and what it serves itself. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { get as getHttp, type IncomingMessage, request as requestHttp } from 'node:http';
import type { Context } from 'koa';
import type { FrontdeskOptions, MappingInput } from '../../../src/index.ts';
import { desksOf, mappingRecord, type TestDesk } from '../../support/desks.ts';
import { type LogLine, recordingLogger } from '../../support/edge.ts';
import { testServers } from '../../support/serve.ts';
import { temporaryFiles } from '../../support/temporary-files.ts';
import { makeCertificate } from '../../support/wire/certificate.ts';

describe('HTTP_REDIRECT_PORT', () => {
  const servers = testServers();
  const openDesk = desksOf(servers);
  const writeFiles = temporaryFiles();
  let directory = '';

  before(async function () {
    directory = await writeFiles();
    const files = ['shop.crt', 'shop.key'] as const;
    if ((await makeCertificate(directory, 'DNS:shop.example,DNS:*.wild.example', { files })) === undefined) this.skip();
  });

  /** Responds with the path, and with the identity headers that it got. */
  function echo(ctx: Context): void {
    ctx.body = ctx.url;
  }

  function open(options: FrontdeskOptions = {}, mappings: readonly MappingInput[] = []): Promise<TestDesk> {
    const records = [mappingRecord('echo', '/', 'echo', { rewrite: '', hostname: '*.mapped.example' }), ...mappings];
    const scratch = { config: { records }, services: { echo }, demo: false, httpRedirectPort: 0, tlsDir: directory };
    return openDesk({ ...scratch, ...options });
  }

  interface Asked {
    readonly method?: string;
    readonly host?: string;
    readonly path?: string;
    readonly headers?: Readonly<Record<string, string>>;
  }

  async function ask(desk: TestDesk, { method = 'GET', host = 'shop.example', path = '/', headers = {} }: Asked = {}) {
    const { redirect, gateway } = await desk.listen();
    const asked = requestHttp({ host: '127.0.0.1', port: redirect.port, method, path, headers: { host, ...headers } });
    const [answer] = (await once(asked.end(), 'response')) as [IncomingMessage];
    let text = '';
    for await (const chunk of answer) text += chunk;
    const location = answer.headers.location?.replace(`:${gateway.port}/`, ':PORT/');
    return { status: answer.statusCode, location, text };
  }

  for (const [asked, status, location] of [
    [{ path: '/a/b?c=d' }, 301, 'https://shop.example:PORT/a/b?c=d'],
    [{ method: 'HEAD' }, 301, 'https://shop.example:PORT/'],
    [{ method: 'POST', path: '/a' }, 308, 'https://shop.example:PORT/a'],
    [{ host: 'SHOP.Example.:80' }, 301, 'https://shop.example:PORT/'],
    [{ host: 'a.wild.example' }, 301, 'https://a.wild.example:PORT/'],
    [{ host: 'a.b.wild.example' }, 404, undefined],
    [{ host: 'a.b.mapped.example' }, 301, 'https://a.b.mapped.example:PORT/'],
    [{ host: 'mapped.example' }, 404, undefined],
    [{ host: 'exact.example' }, 301, 'https://exact.example:PORT/'],
    [{ host: 'prefix.stranger.example' }, 404, undefined],
    [{ host: 'regex.stranger.example' }, 404, undefined],
    [{ host: 'stranger.example' }, 404, undefined],
    [{ host: '127.0.0.1' }, 404, undefined],
    [{ path: 'http://stranger.example/' }, 404, undefined],
    [{ path: 'http://shop.example/a?b' }, 301, 'https://shop.example:PORT/a?b'],
    [{ path: '//stranger.example/' }, 400, undefined],
    [{ path: '/a/../b' }, 400, undefined],
    [{ headers: { 'x-forwarded-host': 'stranger.example' } }, 301, 'https://shop.example:PORT/'],
  ] as const)
    it(`answers ${JSON.stringify(asked)} with ${status}${location === undefined ? '' : ` to ${location}`}`, async () => {
      const desk = await open({}, [
        mappingRecord('exact', '/exact', 'echo', { host: 'Exact.example' }),
        mappingRecord('prefix', '/prefix', 'echo', { hostname: 'prefix.*' }),
        mappingRecord('regex', '/regex', 'echo', { host: '.*', host_regex: true }),
      ]);
      const found = await ask(desk, asked);
      assert.deepEqual([found.status, found.location], [status, location]);
    });

  it('leaves out the port 443 of the URL, which HTTP_REDIRECT_TO can set', async () => {
    assert.equal((await ask(await open({ httpRedirectTo: 443 }))).location, 'https://shop.example/');
    assert.equal((await ask(await open({ httpRedirectTo: 8443 }))).location, 'https://shop.example:8443/');
  });

  it('passes the challenges of authorities to a mapping, whatever their host, and to nothing else', async () => {
    const path = '/.well-known/acme-challenge/abc';
    const desk = await open({}, [mappingRecord('acme', '/.well-known/acme-challenge', 'echo', { rewrite: '' })]);
    for (const host of ['shop.example', 'new.example'])
      assert.deepEqual(await ask(desk, { host, path }), { status: 200, location: undefined, text: path });
    assert.equal((await ask(await open(), { path })).status, 404);
    assert.equal((await ask(desk, { host: 'new.example', path: '/.well-known/other' })).status, 404);
  });

  it('serves what a trusted proxy got over HTTPS, and redirects what it got over HTTP', async () => {
    const desk = await open({ trustedProxies: ['127.0.0.1'] });
    const host = 'a.mapped.example';
    for (const proto of ['https', 'HTTPS', 'wss'])
      assert.equal((await ask(desk, { host, path: '/a', headers: { 'x-forwarded-proto': proto } })).text, '/a');
    const plain = await ask(desk, { host, headers: { 'x-forwarded-proto': 'http' } });
    assert.deepEqual([plain.status, plain.location], [301, `https://${host}:PORT/`]);
    const forwarded = await ask(desk, { host: 'x', headers: { 'x-forwarded-host': 'shop.example' } });
    assert.equal(forwarded.location, 'https://shop.example:PORT/');
  });

  it('redirects nothing that a proxy says came over HTTPS, even if it is not trusted, and warns', async () => {
    const log: LogLine[] = [];
    const desk = await open({ logger: recordingLogger(log) });
    for (const proto of ['https', 'http, https', 'https,http']) {
      const found = await ask(desk, { headers: { 'x-forwarded-proto': proto } });
      assert.deepEqual([found.status, found.location], [400, undefined]);
      assert.match(found.text, /a redirect to HTTPS would not end/);
    }
    assert.equal(log.filter(({ message }) => message?.includes('set trustedProxies to its address')).length, 1);
  });

  it('serves nothing if clients need a certificate, which it cannot ask for', async () => {
    const { file } = (await makeCertificate(await writeFiles(), '')) ?? {};
    const asked = { host: 'a.mapped.example', headers: { 'x-forwarded-proto': 'https' } };
    const options = { tlsClientCa: file, trustedProxies: ['127.0.0.1'] };
    assert.equal((await ask(await open(options), asked)).status, 404);
    assert.equal((await ask(await open({ ...options, tlsClientAuth: 'request' }), asked)).status, 200);
  });

  it('learns of hosts when certificates and mappings change', async () => {
    const certificates = await writeFiles();
    const desk = await open({ tlsDir: certificates });
    assert.equal((await ask(desk, { host: 'new.example' })).status, 404);
    await makeCertificate(certificates, 'DNS:new.example', { files: ['new.crt', 'new.key'] });
    await desk.reload();
    assert.equal((await ask(desk, { host: 'new.example' })).status, 301);
  });

  it('needs HTTPS in this process, or the port of a proxy that has it', async () => {
    await assert.rejects(open({ tlsDir: undefined }), /httpRedirectPort is set, but this process does not serve HTTPS/);
    const desk = await open({ tlsDir: undefined, httpRedirectTo: 443 });
    assert.equal((await ask(desk, { host: 'a.mapped.example' })).location, 'https://a.mapped.example/');
  });

  it('has its own share of CONNECTIONS_MAX, and is closed with the others', async () => {
    const desk = await open();
    const { redirect } = await desk.listen();
    assert.equal(redirect.url, `http://127.0.0.1:${redirect.port}`);
    await desk.close();
    await assert.rejects(once(getHttp(redirect.url), 'response'), { code: 'ECONNREFUSED' });
  });
});
