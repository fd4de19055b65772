/** Paths that a service could interpret as others with different protection, with and without `STRICT_PATHS`. */
import assert from 'node:assert/strict';
import request from 'supertest';
import { sanitisePath } from '#http';
import { authRecord, desksOf, mappingRecord } from '../support/desks.ts';
import { testServers } from '../support/serve.ts';
import { rawRequest, sendRaw } from '../support/wire/raw-client.ts';

/** A lenient service interprets each of these as a protected path. */
const ambiguous = [
  '/ADMIN',
  '/Admin/x',
  '/%61DMIN',
  '/admin%2Fx',
  '/admin%252fx',
  '/%2561dmin',
  '/%2Fadmin',
  '/%2Fx%2Fadmin',
  '/;x/admin',
  '/admin;x=1',
  '/admin%3Bx=1',
  '/admin.',
  '/admin%20',
  '/admin.%20/x',
  '/.../admin',
  '/files/A;x',
  '/adm%C4%B1n',
  '/files/%E2%84%AA',
  '/%EF%BC%8Fadmin',
  '/adm%E2%80%8Bin',
  '/%C1%81DMIN',
  '/%20admin',
  // Tomcat removes the parameters, and then decodes the slash.
  '/;%2Fx/admin',
  '/api;%2Fx/admin/keys',
  '/api//admin',
  '/api/;a/;b/admin',
  // nginx forwards `$uri` decoded, so that the next server finds a query or a fragment.
  '/admin%3Fx',
  '/admin%23x',
  '/admin%253Fx',
  '/admin%3F/%2Fx',
  // Windows, PHP and Fastify.
  '/admin::$DATA',
  '/admin:$i30:$INDEX_ALLOCATION/x',
  '/index.php/admin',
  '/api/v1.php/admin',
  '/admin;/x;y/z',
  // Paths that are already as a lenient service interprets them, next to mappings that are not.
  '/reports',
  '/reports/x',
  '/pages/a',
  '/exact/',
  '/exact;/',
  '/EXACT',
  '/slashed/x',
];

/** A lenient interpretation of these matches the same mapping, or one with the same protection. */
const unambiguous = [
  '/',
  '/open/',
  '/open?a=b%2Fc;d//e',
  '/caf%C3%A9/a%20b',
  '/100%25',
  '/%2525',
  '/@scope%2Fpkg',
  '/a;b.txt',
  '/Open',
  '/wiki/What%3F',
  '/c%23',
  '/c++',
  '/%E2%80%A6',
  '/emoji/%E2%9D%A4%EF%B8%8F',
  '/x:y',
  '/index.php/x',
  '/img/https%3A%2F%2Fcdn.example%2Fa%2Fb%2Fc%2Fd%2Fe%2Ff%2Fg.jpg%3Fw%3D1',
  '/api;v=1/users',
  '/api/%2Fetc%2Fx',
  '/x//y',
  '/x/admin;x',
  '/administrator.',
  '/ALSO/open',
  '/also;x',
  '/report',
  '/pages',
  '/exact/x',
  '/admin.json',
  // The server itself handles the protected path, so no service can misinterpret this one.
  '/GATEWAY/v0/diag/',
];

describe('a public mapping next to a protected one of the same service', () => {
  const servers = testServers(after);
  const open = desksOf(servers);
  const urls = { lenient: '', usual: '' };

  before(async () => {
    const { port } = await servers.http((req, res) => void res.end(`seen: ${req.url}`));
    const service = `127.0.0.1:${port}`;
    const records = [
      mappingRecord('guarded', '/admin', service, { rewrite: '' }),
      mappingRecord('keys', '/api/admin', service, { rewrite: '' }),
      mappingRecord('pattern', '/files/[a-z]', service, { prefix_regex: true }),
      mappingRecord('slash', '/slashed/x/', service, { prefix_regex: true }),
      mappingRecord('capital', '/Reports', service, { rewrite: '' }),
      mappingRecord('capital-pattern', '/Pages/[a-z]', service, { prefix_regex: true }),
      mappingRecord('exact', '/exact', service, { rewrite: '', prefix_exact: true }),
      mappingRecord('open', '/', service, { rewrite: '', bypass_auth: true }),
      mappingRecord('also', '/also', service, { rewrite: '', bypass_auth: true }),
      authRecord,
    ];
    for (const [name, options] of [
      ['lenient', { strictPaths: false }],
      ['usual', {}],
    ] as const) {
      const desk = await open({ config: { records }, only: ['gateway', 'auth'], ...options });
      urls[name] = (await desk.listen()).gateway.url;
    }
  });

  /** Sends the path unchanged. Client libraries would normalise it. */
  const send = (url: string, path: string) => sendRaw(Number(new URL(url).port), rawRequest(`GET ${path}`));

  for (const path of ambiguous)
    it(`receives ${path} only with STRICT_PATHS=false`, async () => {
      const passed = await send(urls.lenient, path);
      assert.match(passed, /^HTTP\/1\.1 200 /);
      assert.ok(passed.includes(`seen: ${sanitisePath(path)}`), passed);
      const refused = await send(urls.usual, path);
      assert.match(refused, /^HTTP\/1\.1 400 /);
      assert.match(refused, /\/gateway\/v0\/problems\/bad-path.*protected differently/s);
      assert.doesNotMatch(refused, /guarded|keys|pattern|capital|exact|slash\b/);
    });

  for (const name of ['lenient', 'usual'] as const)
    it(`receives other paths unchanged, but no protected one: ${name}`, async () => {
      for (const path of unambiguous) await request(urls[name]).get(path).expect(200, `seen: ${path}`);
      // The last path is of the server itself, so no service can interpret it.
      for (const path of [
        '/admin',
        '/admin/',
        '/%61dmin',
        '/admin/a;b',
        '/admin/A',
        '/files/a',
        '/gateway/v0/diag/X',
        '/Reports',
        '/Reports/x',
        '/Pages/a',
        '/exact',
        '/slashed/x/',
        '/admin/https%3A%2F%2Fx%2Fy',
      ])
        assert.match(await send(urls[name], path), /^HTTP\/1\.1 401 /, path);
      for (const path of [
        '//open',
        '//admin/x',
        '/x/..%20/admin',
        '/%C0%AE%C0%AE/admin',
        '/%2e/admin',
        '/x%255cadmin',
        '/x%2500',
        '/x/%20../admin',
        '/x%09y',
        '/x%250Ay',
      ])
        assert.match(await send(urls[name], path), /^HTTP\/1\.1 400 /, path);
    });

  it('does not receive a path with too many readings', async () => {
    assert.match(await send(urls.usual, `/${'%2F;x%3F'.repeat(20)}`), /^HTTP\/1\.1 400 /);
    assert.match(await send(urls.usual, `/${'%20a'.repeat(3000)}%2F%2F%2F%2F%2F%2F%2F%2F`), /^HTTP\/1\.1 400 /);
  });
});
