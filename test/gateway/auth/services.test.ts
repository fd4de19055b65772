/** Several auth services: each mapping has its own, and each service sets only its own identity headers. */
import assert from 'node:assert/strict';
import supertest from 'supertest';
import type { AuthService } from '#config';
import { authRecordOf, type EdgeOptions, gatewayOf, mappingOf, remote, startEdge } from '../../support/edge.ts';
import { testServers } from '../../support/serve.ts';
import { startUpstream } from '../../support/upstream.ts';

const staffRecord = authRecordOf({ name: 'staff', authService: 'staff', isDefault: false });

describe('several auth services', () => {
  const servers = testServers();

  async function setUp(options: EdgeOptions = {}) {
    const everything = { 'X-Travel-User': 'by users', 'X-Staff': 'by users', 'X-Reserved': 'by users' };
    const users = await startUpstream(servers, (res) => res.writeHead(200, everything).end());
    const staff = await startUpstream(servers, (res) => res.writeHead(200, { 'X-Staff': 'by staff' }).end());
    const upstream = await startUpstream(servers);
    const edge = await startEdge(servers, {
      authServices: [
        { record: authRecordOf({ name: 'users', authService: 'users' }) },
        { record: { ...staffRecord, allowedAuthorizationHeaders: ['x-staff'] } },
      ],
      identityHeaders: ['x-reserved'],
      mappings: [
        mappingOf(),
        mappingOf({ name: 'admin', prefix: '/admin', authService: 'staff' }),
        mappingOf({ name: 'open', prefix: '/open', bypassAuth: true, authService: 'staff' }),
      ],
      targets: { users: remote(users), staff: remote(staff), hotel: remote(upstream) },
      ...options,
    });
    const get = (path: string) =>
      supertest(edge.origin).get(path).set({ 'X-Travel-User': 'me', 'X-Staff': 'me', 'X-Reserved': 'me' });
    return { users, staff, upstream, edge, get };
  }

  it('are called as the mapping specifies, or else the default, and set only their own identity headers', async () => {
    const { users, staff, upstream, edge, get } = await setUp();
    for (const [path, asked, expected] of [
      ['/v1/hotels', [1, 0], ['by users', undefined, undefined]],
      ['/admin', [1, 1], [undefined, 'by staff', undefined]],
      ['/open', [1, 1], [undefined, undefined, undefined]],
    ] as const) {
      await get(path).expect(200);
      assert.deepEqual([users.reached.length, staff.reached.length], asked, path);
      const headers = upstream.reached.at(-1)?.headers ?? {};
      assert.deepEqual([headers['x-travel-user'], headers['x-staff'], headers['x-reserved']], expected, path);
    }
    assert.deepEqual(edge.gateway.snapshot().auth, { allowed: 2, denied: 0, error: 0 });
  });

  it('receive no identity header of another auth service from the client', async () => {
    const { staff, get } = await setUp({
      authServices: [
        { record: authRecordOf({ authService: 'users' }) },
        { record: { ...staffRecord, allowedRequestHeaders: ['x-travel-user', 'x-other'] } },
      ],
    });
    await get('/admin').set('X-Other', 'sent').expect(200);
    assert.deepEqual([staff.only().headers['x-travel-user'], staff.only().headers['x-other']], [undefined, 'sent']);
  });

  const pageRunning = (run: () => Promise<void>) => ({
    name: 'diag',
    prefix: '/gateway/v0/diag',
    forAdmins: true,
    run,
  });

  it("protect the server's own pages with the default auth service", async () => {
    const { users, staff, get } = await setUp({ internalRoutes: [pageRunning(async () => {})] });
    await get('/gateway/v0/diag/');
    assert.deepEqual([users.reached.length, staff.reached.length], [1, 0]);
  });

  it("need no default if every mapping names one, but then the server's own pages are not served", async () => {
    const { get, users, staff } = await setUp({
      authServices: ['users', 'staff'].map((name) => ({
        record: authRecordOf({ name, authService: name, isDefault: false }),
      })),
      mappings: [
        mappingOf({ authService: 'users' }),
        mappingOf({ name: 'admin', prefix: '/admin', authService: 'staff' }),
      ],
      internalRoutes: [pageRunning(async () => assert.fail('an unguarded page'))],
    });
    await get('/v1/hotels').expect(200);
    await get('/admin').expect(200);
    await get('/gateway/v0/diag/').expect(404);
    assert.deepEqual([users.reached.length, staff.reached.length], [1, 1]);
  });

  function checkRejected(what: string, message: RegExp, records: readonly Partial<AuthService>[], mapping = {}) {
    it(`cannot be used ${what}`, () => {
      const authServices = records.map((one) => ({ record: authRecordOf(one), port: () => assert.fail('asked') }));
      const services = { hotel: async () => {} };
      const create = () => gatewayOf({ mappings: [mappingOf(mapping)], authServices, services });
      assert.throws(create, message);
    });
  }

  const [a, b, other] = [{ name: 'a' }, { name: 'b' }, { isDefault: false }];
  const noDefault = /Mapping hotel does not name an auth service, and none of the 2 is the default/;
  checkRejected('with two defaults', /2 of 2 auth services are the default/, [a, b]);
  checkRejected('without a default for a mapping that does not name one', noDefault, [
    { ...a, ...other },
    { ...b, ...other },
  ]);
  checkRejected('with two of the same name', /same name/, [a, { ...a, ...other }]);
  for (const records of [[], [a]])
    checkRejected(
      `by a mapping that names an unknown one, with ${records.length} records`,
      /no auth service "x"/,
      records,
      {
        authService: 'x',
      },
    );
});
