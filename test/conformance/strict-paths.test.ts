/** Paths that a service could interpret as others with different authentication, with and without `STRICT_PATHS`. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import request from 'supertest';
import { lenientReading, sanitisePath } from '#http';
import { authRecord, desksOf, mappingRecord } from '../support/desks.ts';
import { testServers } from '../support/serve.ts';
import { rawRequest, sendRaw } from '../support/wire/raw-client.ts';

/** A lenient service interprets each of these as a protected path. */
const ambiguous = [
  ...['/ADMIN', '/Admin/x', '/%61DMIN', '/admin%2Fx', '/admin%252fx', '/%2561dmin', '/%2Fadmin'],
  ...['/;x/admin', '/admin;x=1', '/admin%3Bx=1', '/admin.', '/admin%20', '/admin.%20/x', '/.../admin', '/files/A;x'],
  ...['/adm%C4%B1n', '/files/%E2%84%AA'],
  // Paths that are already as a lenient service interprets them, next to mappings that are not.
  ...['/reports', '/reports/x', '/pages/a', '/exact/', '/exact;/', '/EXACT'],
];

/** A lenient interpretation of these matches the same mapping, or one with the same authentication. */
const unambiguous = [
  ...[
    '/',
    '/open/',
    '/open?a=b%2Fc;d//e',
    '/caf%C3%A9/a%20b',
    '/100%25',
    '/%2525',
    '/@scope%2Fpkg',
    '/a;b.txt',
    '/Open',
  ],
  ...['/x//y', '/x/admin;x', '/administrator.', '/ALSO/open', '/also;x', '/report', '/pages', '/exact/x'],
  // The server itself handles the protected path, so no service can misinterpret this one.
  '/GATEWAY/v0/diag/',
];

describe('a public mapping next to a protected one of the same service', () => {
  const servers = testServers(after);
  const open = desksOf(servers);
  const urls = { usual: '', strict: '' };

  before(async () => {
    const { port } = await servers.http((req, res) => void res.end(`seen: ${req.url}`));
    const service = `127.0.0.1:${port}`;
    const records = [
      mappingRecord('guarded', '/admin', service, { rewrite: '' }),
      mappingRecord('pattern', '/files/[a-z]', service, { prefix_regex: true }),
      mappingRecord('capital', '/Reports', service, { rewrite: '' }),
      mappingRecord('capital-pattern', '/Pages/[a-z]', service, { prefix_regex: true }),
      mappingRecord('exact', '/exact', service, { rewrite: '', prefix_exact: true }),
      mappingRecord('open', '/', service, { rewrite: '', bypass_auth: true }),
      mappingRecord('also', '/also', service, { rewrite: '', bypass_auth: true }),
      authRecord,
    ];
    for (const strictPaths of [false, true]) {
      const desk = await open({ config: { records }, only: ['gateway', 'auth'], strictPaths });
      urls[strictPaths ? 'strict' : 'usual'] = (await desk.listen()).gateway.url;
    }
  });

  /** Sends the path unchanged. Client libraries would normalise it. */
  const send = (url: string, path: string) => sendRaw(Number(new URL(url).port), rawRequest(`GET ${path}`));

  for (const path of ambiguous)
    it(`receives ${path}, which STRICT_PATHS rejects`, async () => {
      const passed = await send(urls.usual, path);
      assert.match(passed, /^HTTP\/1\.1 200 /);
      assert.ok(passed.includes(`seen: ${sanitisePath(path)}`), passed);
      const refused = await send(urls.strict, path);
      assert.match(refused, /^HTTP\/1\.1 400 /);
      assert.match(refused, /\/gateway\/v0\/problems\/bad-path.*requires different authentication/s);
    });

  for (const name of ['usual', 'strict'] as const)
    it(`receives other paths unchanged, but no protected one: ${name}`, async () => {
      for (const path of unambiguous) await request(urls[name]).get(path).expect(200, `seen: ${path}`);
      // The last path is of the server itself, so no service can interpret it.
      for (const path of [
        ...['/admin', '/admin/', '/%61dmin', '/admin/a;b', '/admin/A', '/files/a', '/gateway/v0/diag/X'],
        ...['/Reports', '/Reports/x', '/Pages/a', '/exact'],
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
      ])
        assert.match(await send(urls[name], path), /^HTTP\/1\.1 400 /, path);
    });

  it('receives exactly the paths that are public in both interpretations', async () => {
    const parts = ['/', '/', 'admin', 'ADMIN', 'x', ';', '.', '%20', '%2F', '%252F', '%41', '%61', '%25'];
    const paths = fc.array(fc.constantFrom(...parts), { maxLength: 6 }).map((some) => `/${some.join('')}`);
    await fc.assert(
      fc.asyncProperty(paths, async (path) => {
        const plain = sanitisePath(path);
        fc.pre(plain !== undefined);
        const [sent = false, read = false] = [plain, lenientReading(plain ?? '')].map((text) =>
          /^\/admin(?:\/|$)/.test(text ?? ''),
        );
        const expected = sent === read ? (sent ? '401' : '200') : '400';
        assert.equal((await send(urls.strict, path)).slice(9, 12), expected, path);
      }),
      { numRuns: 150 },
    );
  });
});
