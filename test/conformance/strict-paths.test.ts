/** Paths that services may read differently, with `STRICT_PATHS` and without it. */
import assert from 'node:assert/strict';
import request from 'supertest';
import { authRecord, desksOf, mappingRecord } from '../support/desks.ts';
import { testServers } from '../support/serve.ts';
import { rawRequest, sendRaw } from '../support/wire/raw-client.ts';

/** A service that normalises reads each as `/admin` or a path below it. */
const ambiguous = [
  ['/admin%2Fx', 'an encoded slash'],
  ['/admin%252fx', 'an encoded slash'],
  ['/x//admin', 'an empty segment'],
  ['/admin;x=1', 'a path parameter'],
  ['/admin%3Bx=1', 'a path parameter'],
  ['/%2561dmin', 'a percent-encoding that is encoded again'],
] as const;

describe('an open mapping beside a guarded one of the same service', () => {
  const servers = testServers(after);
  const open = desksOf(servers);
  const urls = { usual: '', strict: '', admin: '' };

  before(async () => {
    const { port } = await servers.http((req, res) => void res.end(`seen: ${req.url}`));
    const service = `127.0.0.1:${port}`;
    const records = [
      mappingRecord('guarded', '/admin', service, { rewrite: '' }),
      mappingRecord('open', '/', service, { rewrite: '', bypass_auth: true }),
      authRecord,
    ];
    for (const strictPaths of [false, true]) {
      const desk = await open({ config: { records }, only: ['gateway', 'auth'], adminPort: 0, strictPaths });
      const { gateway, admin } = await desk.listen();
      urls[strictPaths ? 'strict' : 'usual'] = gateway?.url ?? '';
      urls.admin = admin?.url ?? '';
    }
  });

  /** Client libraries would normalise the path first. */
  const send = (url: string, path: string) => sendRaw(Number(new URL(url).port), rawRequest(`GET ${path}`));

  for (const [path, found] of ambiguous) {
    it(`passes ${path} unchanged to the open one; STRICT_PATHS refuses it and says why`, async () => {
      const passed = await send(urls.usual, path);
      assert.match(passed, /^HTTP\/1\.1 200 /);
      assert.ok(passed.includes(`seen: ${path}`), passed);
      const refused = await send(urls.strict, path);
      assert.match(refused, /^HTTP\/1\.1 400 /);
      assert.ok(refused.includes('/gateway/v0/problems/bad-path') && refused.includes(found), refused);
    });
  }

  for (const name of ['usual', 'strict'] as const) {
    it(`serves paths that can be read in one way only: ${name}`, async () => {
      for (const path of ['/', '/open/', '/open?a=b%2Fc;d//e', '/caf%C3%A9/a%20b', '/100%25'])
        await request(urls[name]).get(path).expect(200, `seen: ${path}`);
      assert.ok((await send(urls[name], '//open')).includes('seen: /open'));
      for (const path of ['/admin', '/admin/', '//admin/x', '/%61dmin'])
        assert.match(await send(urls[name], path), /^HTTP\/1\.1 401 /, path);
    });
  }

  it('are refused at the admin port as well', async () => {
    assert.match(await send(urls.admin, '/metrics;x=1'), /^HTTP\/1\.1 400 /);
    assert.match(await send(urls.admin, '/metrics'), /^HTTP\/1\.1 200 /);
  });
});
