/** WebDAV behind a prefix: MOVE and COPY reach the intended destination, and only behind the same mapping. */
import assert from 'node:assert/strict';
import type { Mapping } from '#config';
import type { EdgeOptions } from '../support/edge.ts';
import { authRecordOf, mappingOf, remote, startEdge } from '../support/edge.ts';
import { type Served, testServers } from '../support/serve.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';
import { eventually } from '../support/waiting.ts';
import { rawRequest, sendRaw } from '../support/wire/raw-client.ts';

const servers = testServers();

/**
 * A minimal WebDAV server. Like wsgidav, it rejects a destination whose scheme and host are not those of the request.
 */
async function startWebdav(): Promise<Upstream & { readonly files: Map<string, string> }> {
  const files = new Map<string, string>();
  const upstream = await startUpstream(servers, (res, { method, url, headers: { host, destination } }) => {
    const end = (status: number, text = '') => void res.writeHead(status).end(text);
    const content = files.get(url);
    if (content === undefined) return end(404);
    if (method !== 'MOVE' && method !== 'COPY') return end(200, content);
    const target = new URL(String(destination), `http://${host}`);
    if (target.origin !== `http://${host}`) return end(502, 'the service itself');
    files.set(target.pathname, content);
    if (method === 'MOVE') files.delete(url);
    return end(201);
  });
  return { ...upstream, files };
}

async function setUp(fields: Partial<Mapping> = {}, options: EdgeOptions = {}, base = '') {
  const webdav = await startWebdav();
  webdav.files.set(`${base}/a`, 'content');
  const others = { targets: { hotel: remote(webdav, base) } };
  const mapping = { prefix: '/dav', ...fields };
  const { port, gateway } = await startEdge(servers, {
    ...others,
    ...(options.mappings ? {} : { mapping }),
    ...options,
  });
  const ask = async (request: string, ...headers: readonly string[]) =>
    Number((await sendRaw(port, rawRequest(request, headers))).split(' ')[1]);
  const sent = () => webdav.reached.at(-1)?.headers ?? {};
  const traffic = () => gateway.parts.table.routes[0]?.traffic.totals;
  return { webdav, port, ask, sent, traffic };
}

describe('WebDAV', () => {
  for (const method of ['MOVE', 'COPY'])
    it(`${method} accepts a destination as a path or as a URL with either scheme`, async () => {
      const { webdav, ask } = await setUp();
      for (const destination of ['/dav/b', 'http://front.example/dav/b', 'https://front.example/dav/b']) {
        webdav.files.clear();
        webdav.files.set('/a', 'content');
        assert.equal(await ask(`${method} /dav/a`, `Destination: ${destination}`), 201);
        assert.deepEqual([...webdav.files.keys()], method === 'MOVE' ? ['/b'] : ['/a', '/b']);
      }
    });

  function checkSent(what: string, fields: Partial<Mapping>, expected: (service: Served) => string, path?: string) {
    it(`rewrites the destination for the service ${what}`, async () => {
      const { webdav, ask, sent } = await setUp(fields, {}, path);
      await ask(
        'COPY /dav/a',
        'Destination: http://front.example/dav/b%20c?d',
        'If: <http://front.example/dav/a> (<urn:a>)',
      );
      const base = expected(webdav);
      assert.equal(sent().destination, `${base}b%20c?d`);
      assert.equal(sent()['if'], `<${base}a> (<urn:a>)`);
    });
  }

  checkSent('without the prefix', {}, () => 'http://front.example/');
  checkSent('with another prefix', { rewrite: '/files/' }, () => 'http://front.example/files/');
  checkSent('with the base path of its address', { rewrite: '/x' }, () => 'http://front.example/base/x/', '/base');
  checkSent('with the same prefix', { rewrite: '' }, () => 'http://front.example/dav/');
  checkSent(
    'with a regular expression',
    { regexRewrite: { pattern: '^/dav', substitution: '/d' } },
    () => 'http://front.example/d/',
  );
  checkSent('with the host of host_rewrite', { hostRewrite: 'dav.local:81' }, () => 'http://dav.local:81/');
  checkSent('with its own host', { hostRewrite: '{service}' }, ({ origin }) => `${origin}/`);

  for (const elsewhere of [
    'http://elsewhere.example/',
    'http://elsewhere.example/guarded/b',
    'https://front.example:81/dav/b',
    'ftp://elsewhere.example/guarded/b',
    'urn:guarded',
  ])
    it(`names a resource without state to the service when If refers to ${elsewhere}`, async () => {
      const { ask, sent } = await setUp();
      assert.equal(await ask('GET /dav/a', `If: <${elsewhere}> (["a"]) </dav/b> (Not <urn:c>)`), 200);
      assert.equal(sent()['if'], '<http://elsewhere.invalid/> (["a"]) </b> (Not <urn:c>)');
    });

  it('sends a destination that is a path as a path', async () => {
    const { ask, sent } = await setUp();
    await ask('COPY /dav/a', 'Destination: /dav/b');
    assert.equal(sent().destination, '/b');
  });

  it('sends the destination as a path when the address of the service is not yet chosen', async () => {
    const webdav = await startWebdav();
    const origins = () => [webdav.origin, webdav.origin.replace('127.0.0.1', 'localhost')];
    const targets = { hotel: { kind: 'remote' as const, origins, path: '' } };
    const { ask } = await setUp({ hostRewrite: '{service}' }, { targets });
    await ask('COPY /dav/a', 'Destination: http://front.example/dav/b');
    assert.equal(webdav.only().headers.destination, '/b');
  });

  it('leaves the Destination of other methods alone, and drops New-URI', async () => {
    const { ask, sent } = await setUp();
    await ask('GET /dav/a', 'Destination: LAX', 'New-URI: /secret');
    assert.deepEqual([sent().destination, sent()['new-uri']], ['LAX', undefined]);
  });

  describe('checks before it calls the service whether the destination is', () => {
    const guarded = { allowedAuthorizationHeaders: ['x-user'] };
    const mappings = [
      mappingOf({ name: 'dav', prefix: '/dav', bypassAuth: true }),
      mappingOf({ name: 'guarded', prefix: '/dav/guarded' }),
      mappingOf({ name: 'share', prefix: '/shared', bypassAuth: true, weight: 50 }),
      mappingOf({ name: 'other-share', prefix: '/shared', bypassAuth: true, weight: 50 }),
    ];
    const options: EdgeOptions = {
      mappings,
      authService: authRecordOf(guarded),
      authPort: () => ({ outcome: 'deny', status: 401, headers: {} }),
      strictPaths: true,
    };

    function check(what: string, status: number, ...headers: readonly string[]) {
      it(`${what}: ${status}`, async () => {
        const { webdav, ask } = await setUp({}, options);
        for (const method of ['COPY', 'MOVE']) assert.equal(await ask(`${method} /dav/a`, ...headers), status);
        assert.equal(webdav.reached.length, 0);
      });
    }

    check('on another server', 502, 'Destination: http://elsewhere.example/dav/b');
    check('on another port', 502, 'Destination: http://front.example:81/dav/b');
    check('behind another mapping', 502, 'Destination: /dav/guarded/b');
    check('behind another mapping, percent-encoded', 502, 'Destination: /dav/%67uarded/b');
    check('behind no mapping', 502, 'Destination: http://front.example/other');
    check('outside the prefix, at a path that starts with the same letters', 502, 'Destination: /davx');
    check('behind another mapping for a lenient service', 400, 'Destination: /dav/GUARDED/b');
    check('above the prefix', 400, 'Destination: /dav/../b');
    check('above the prefix, encoded', 400, 'Destination: http://front.example/dav/%2e%2e/guarded/b');
    check('with a byte at its end that only Latin-1 has as a blank', 400, 'Destination: /dav/\xc3\xa0');
    check('sent twice', 400, 'Destination: /dav/b', 'Destination: /dav/c');
    check(
      'valid, but If refers to a resource behind another mapping',
      502,
      'Destination: /dav/b',
      'If: </dav/guarded/b> (["a"])',
    );
    check('valid, but If refers to too many resources', 400, `If: ${'</dav/b> (["a"])'.repeat(33)}`);

    it('and counts a rejection neither as one by the auth service nor as one by a limit', async () => {
      const authPort = () => ({ outcome: 'allow', headers: {} }) as const;
      const { ask, traffic } = await setUp({}, { authService: authRecordOf(guarded), authPort });
      assert.equal(await ask('COPY /dav/a', 'Destination: /dav/../b'), 400);
      const totals = await eventually(() => traffic() ?? assert.fail('no request was counted'));
      assert.deepEqual([totals.refusedByAuth, totals.refusedByLimit], [0, 0]);
    });

    it('behind mappings that share requests by weight, with up to 32 resources: 201', async () => {
      const { ask } = await setUp({}, options);
      for (let count = 0; count < 8; count += 1)
        assert.equal(await ask('COPY /shared/a', 'Destination: /shared/b'), 201);
      assert.equal(
        await ask('COPY /shared/a', 'Destination: /shared/b', `If: ${'</shared/b> (["a"])'.repeat(31)}`),
        201,
      );
    });
  });
});
