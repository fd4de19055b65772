/** WebDAV behind a prefix: what a client moves and copies is where it says, and stays behind the mapping. */
import assert from 'node:assert/strict';
import type { Mapping } from '#config';
import type { EdgeOptions } from '../support/edge.ts';
import { authRecordOf, mappingOf, remote, startEdge } from '../support/edge.ts';
import { type Served, testServers } from '../support/serve.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';
import { rawRequest, sendRaw } from '../support/wire/raw-client.ts';

const servers = testServers();

/** Files by path. As wsgidav does, it refuses a destination that is not on the host and in the scheme that it is asked by. */
async function startWebdav(): Promise<Upstream & { readonly files: Map<string, string> }> {
  const files = new Map<string, string>();
  const upstream = await startUpstream(servers, (res, { method, url, headers: { host, destination } }) => {
    const end = (status: number, text = '') => void res.writeHead(status).end(text);
    const content = files.get(url);
    if (content === undefined) return end(404);
    if (method !== 'MOVE' && method !== 'COPY') return end(200, content);
    const there = new URL(String(destination), `http://${host}`);
    if (there.origin !== `http://${host}`) return end(502, 'the service itself');
    files.set(there.pathname, content);
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
  const { port } = await startEdge(servers, { ...others, ...(options.mappings ? {} : { mapping }), ...options });
  const ask = async (request: string, ...headers: readonly string[]) =>
    Number((await sendRaw(port, rawRequest(request, headers))).split(' ')[1]);
  const sent = () => webdav.reached.at(-1)?.headers ?? {};
  return { webdav, port, ask, sent };
}

describe('WebDAV', () => {
  for (const method of ['MOVE', 'COPY'])
    it(`${method} puts a file where the client says, by path and by URL, in either scheme`, async () => {
      const { webdav, ask } = await setUp();
      for (const destination of ['/dav/b', 'http://front.example/dav/b', 'https://front.example/dav/b']) {
        webdav.files.clear();
        webdav.files.set('/a', 'content');
        assert.equal(await ask(`${method} /dav/a`, `Destination: ${destination}`), 201);
        assert.deepEqual([...webdav.files.keys()], method === 'MOVE' ? ['/b'] : ['/a', '/b']);
      }
    });

  function checkSent(what: string, fields: Partial<Mapping>, expected: (service: Served) => string, base?: string) {
    it(`has a destination as the service knows it: ${what}`, async () => {
      const { webdav, ask, sent } = await setUp(fields, {}, base);
      await ask(
        'COPY /dav/a',
        'Destination: http://front.example/dav/b%20c?d',
        'If: <http://front.example/dav/a> (<urn:a>)',
      );
      const there = expected(webdav);
      assert.equal(sent().destination, `${there}b%20c?d`);
      assert.equal(sent()['if'], `<${there}a> (<urn:a>)`);
    });
  }

  checkSent('without the prefix', {}, () => 'http://front.example/');
  checkSent('with another', { rewrite: '/files/' }, () => 'http://front.example/files/');
  checkSent('below the path of its address', { rewrite: '/x' }, () => 'http://front.example/base/x/', '/base');
  checkSent('with the prefix that stays', { rewrite: '' }, () => 'http://front.example/dav/');
  checkSent(
    'by a regular expression',
    { regexRewrite: { pattern: '^/dav', substitution: '/d' } },
    () => 'http://front.example/d/',
  );
  checkSent('on the host of host_rewrite', { hostRewrite: 'dav.local:81' }, () => 'http://dav.local:81/');
  checkSent('on its own host', { hostRewrite: '{service}' }, ({ origin }) => `${origin}/`);

  it('has a destination without a host where the address is not known yet', async () => {
    const webdav = await startWebdav();
    const origins = () => [webdav.origin, webdav.origin.replace('127.0.0.1', 'localhost')];
    const targets = { hotel: { kind: 'remote' as const, origins, path: '' } };
    const { ask } = await setUp({ hostRewrite: '{service}' }, { targets });
    await ask('COPY /dav/a', 'Destination: http://front.example/dav/b');
    assert.equal(webdav.only().headers.destination, '/b');
  });

  it('keeps the Destination of other methods, and no New-URI', async () => {
    const { ask, sent } = await setUp();
    await ask('GET /dav/a', 'Destination: LAX', 'New-URI: /secret');
    assert.deepEqual([sent().destination, sent()['new-uri']], ['LAX', undefined]);
  });

  describe('is refused, before the service hears of it, where the destination is', () => {
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
    check('behind another mapping, spelt otherwise', 502, 'Destination: /dav/%67uarded/b');
    check('behind no mapping', 502, 'Destination: http://front.example/other');
    check('beside the prefix', 502, 'Destination: /davx');
    check('perhaps behind another mapping', 400, 'Destination: /dav/GUARDED/b');
    check('above the prefix', 400, 'Destination: /dav/../b');
    check('above the prefix, encoded', 400, 'Destination: http://front.example/dav/%2e%2e/guarded/b');
    check('two places', 400, 'Destination: /dav/b', 'Destination: /dav/c');
    check('another resource of If', 502, 'Destination: /dav/b', 'If: </dav/guarded/b> (["a"])');
    check('one of too many of If', 400, `If: ${'</dav/b> (["a"])'.repeat(33)}`);

    it('but not for a share of the same requests, nor for 32 resources', async () => {
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
