/** Paths that a service may read as another: what comes of them at a desk as it stands, and with `STRICT_PATHS`. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import request from 'supertest';
import { type Server, startServer, startServers } from '../support/frontdesk-process.ts';
import { rawRequest, sendRaw } from '../support/raw-client.ts';
import { temporaryFiles } from '../support/temporary-files.ts';

/** What a service that normalises would read as `/admin` or what is below it, and what makes it so. */
const ambiguous = [
  ['/admin%2Fx', 'an encoded slash'],
  ['/admin%252fx', 'an encoded slash'],
  ['/x//admin', 'an empty segment'],
  ['/admin;x=1', 'a path parameter'],
  ['/admin%3Bx=1', 'a path parameter'],
  ['/%2561dmin', 'a percent-encoding that is encoded again'],
] as const;

describe('an open mapping beside a guarded one of the same service', () => {
  const writeFiles = temporaryFiles();
  const upstream = createServer((req, res) => void res.end(`seen: ${req.url}`));
  let desks: readonly Server[] = [];

  before(async function () {
    this.timeout(30_000);
    await once(upstream.listen(0, '127.0.0.1'), 'listening');
    const { port } = upstream.address() as AddressInfo;
    const mapping = `apiVersion: gateway/v1\nkind: Mapping\nservice: 127.0.0.1:${port}\nrewrite: ''\n`;
    const env = {
      ADMIN_PORT: '0',
      CONFIG_DIR: await writeFiles({
        'services/guarded.yaml': `${mapping}name: guarded\nprefix: /admin\n`,
        'services/open.yaml': `${mapping}name: open\nprefix: /\nbypass_auth: true\n`,
        'services/auth.yaml':
          'apiVersion: gateway/v1\nkind: AuthService\nname: auth\nauth_service: auth\nproto: http\n',
      }),
    };
    const only = ['--only', 'gateway,auth'];
    desks = await startServers([
      startServer(only, { env: { ...env, STRICT_PATHS: 'true' } }),
      startServer(only, { env }),
    ]);
  });

  after(async () => {
    upstream.close();
    await Promise.all(desks.map((desk) => desk.stop()));
  });

  const strict = () => desks[0]?.gatewayUrl ?? '';
  const usual = () => desks[1]?.gatewayUrl ?? '';

  /** Past every client library, since each would tidy the path first. */
  const send = (url: string, path: string) => sendRaw(Number(new URL(url).port), rawRequest(`GET ${path}`));

  for (const [path, found] of ambiguous) {
    it(`passes ${path} as it stands to the open one`, async () => {
      const answer = await send(usual(), path);
      assert.match(answer, /^HTTP\/1\.1 200 /);
      assert.ok(answer.includes(`seen: ${path}`), answer);
    });

    it(`refuses ${path} with STRICT_PATHS, and says why`, async () => {
      const answer = await send(strict(), path);
      assert.match(answer, /^HTTP\/1\.1 400 /);
      assert.ok(answer.includes('/gateway/v0/problems/bad-path') && answer.includes(found), answer);
    });
  }

  for (const [name, url] of [
    ['without', usual],
    ['with', strict],
  ] as const)
    it(`serves what can be read in one way only, ${name} STRICT_PATHS`, async () => {
      for (const path of ['/', '/open/', '/open?a=b%2Fc;d//e', '/caf%C3%A9/a%20b', '/100%25'])
        await request(url()).get(path).expect(200, `seen: ${path}`);
      assert.ok((await send(url(), '//open')).includes('seen: /open'));
      for (const path of ['/admin', '/admin/', '//admin/x', '/%61dmin'])
        assert.match(await send(url(), path), /^HTTP\/1\.1 401 /, path);
    });

  it('refuses such a path at the admin port as well', async () => {
    const url = desks[0]?.adminUrl ?? '';
    assert.match(await send(url, '/metrics;x=1'), /^HTTP\/1\.1 400 /);
    assert.match(await send(url, '/metrics'), /^HTTP\/1\.1 200 /);
  });
});
