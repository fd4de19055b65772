/** Several auth services: each mapping asks its own, and each sets only its own identity headers. */
import assert from 'node:assert/strict';
import supertest from 'supertest';
import { type ConfiguredAuthService, createGateway } from '#gateway';
import { authRecordOf, type EdgeOptions, mappingOf, remote, startEdge } from '../../support/edge.ts';
import { testServers } from '../../support/serve.ts';
import { startUpstream } from '../../support/upstream.ts';

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
        {
          record: authRecordOf({
            name: 'staff',
            authService: 'staff',
            isDefault: false,
            allowedAuthorizationHeaders: ['x-staff'],
          }),
        },
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
    const seen = () => {
      const { headers } = upstream.only();
      return [headers['x-travel-user'], headers['x-staff'], headers['x-reserved']];
    };
    return { users, staff, edge, get, seen };
  }

  it('are asked as the mapping says; without a name the default one is', async () => {
    const { users, staff, get } = await setUp();
    await get('/v1/hotels').expect(200);
    assert.deepEqual([users.reached.length, staff.reached.length], [1, 0]);
    await get('/admin').expect(200);
    assert.deepEqual([users.reached.length, staff.reached.length], [1, 1]);
  });

  it('are not asked with bypass_auth, even if the mapping names one', async () => {
    const { users, staff, get } = await setUp();
    await get('/open').expect(200);
    assert.deepEqual([users.reached.length, staff.reached.length], [0, 0]);
  });

  for (const [path, expected] of [
    ['/v1/hotels', ['by users', undefined, undefined]],
    ['/admin', [undefined, 'by staff', undefined]],
    ['/open', [undefined, undefined, undefined]],
  ] as const) {
    it(`set only their own identity headers, and no client sets any: ${path}`, async () => {
      const { get, seen } = await setUp();
      await get(path).expect(200);
      assert.deepEqual(seen(), expected);
    });
  }

  it('get no identity header of another auth service from the client', async () => {
    const { staff, get } = await setUp({
      authServices: [
        { record: authRecordOf({ authService: 'users' }) },
        {
          record: authRecordOf({
            name: 'staff',
            authService: 'staff',
            isDefault: false,
            allowedRequestHeaders: ['x-travel-user', 'x-other'],
          }),
        },
      ],
    });
    await get('/admin').set('X-Other', 'told').expect(200);
    assert.deepEqual([staff.only().headers['x-travel-user'], staff.only().headers['x-other']], [undefined, 'told']);
  });

  it('share their counts', async () => {
    const { get, edge } = await setUp();
    await get('/v1/hotels');
    await get('/admin');
    assert.deepEqual(edge.gateway.snapshot().auth, { allowed: 2, denied: 0, error: 0 });
  });

  it("guard the server's own pages by the default one", async () => {
    const run = async () => {};
    const page = { name: 'diag', prefix: '/gateway/v0/diag', rewrite: '', authenticated: true, run };
    const { users, staff, get } = await setUp({ internalRoutes: [page] });
    await get('/gateway/v0/diag/');
    assert.deepEqual([users.reached.length, staff.reached.length], [1, 0]);
  });

  it("need no default where each mapping names one; then the server's own pages are not served", async () => {
    const run = async () => assert.fail('an unguarded page');
    const { get, users, staff } = await setUp({
      authServices: ['users', 'staff'].map((name) => ({
        record: authRecordOf({ name, authService: name, isDefault: false }),
      })),
      mappings: [
        mappingOf({ authService: 'users' }),
        mappingOf({ name: 'admin', prefix: '/admin', authService: 'staff' }),
      ],
      internalRoutes: [{ name: 'diag', prefix: '/gateway/v0/diag', rewrite: '', authenticated: true, run }],
    });
    await get('/v1/hotels').expect(200);
    await get('/admin').expect(200);
    await get('/gateway/v0/diag/').expect(404);
    assert.deepEqual([users.reached.length, staff.reached.length], [1, 1]);
  });

  function checkRefused(what: string, message: RegExp, records: Parameters<typeof authRecordOf>, mapping = {}) {
    it(`cannot be used ${what}`, () => {
      const authServices: ConfiguredAuthService[] = records.map((record) => ({
        record: authRecordOf(record),
        port: () => assert.fail('asked'),
      }));
      const services = { hotel: async () => {} };
      const resolve = (name: string) => ({ kind: 'local', name }) as const;
      const make = () => createGateway({ mappings: [mappingOf(mapping)], authServices, services, resolve });
      assert.throws(make, message);
    });
  }

  const two = [{ name: 'a' }, { name: 'b' }] as unknown as Parameters<typeof authRecordOf>;
  checkRefused('with two defaults', /2 of 2 auth services are the default/, two);
  const none = two.map((one) => ({ ...one, isDefault: false })) as typeof two;
  checkRefused(
    'with no default for a mapping that names none',
    /Mapping hotel names no auth service, and none of 2 is the default/,
    none,
  );
  const same = [{ name: 'a' }, { name: 'a', isDefault: false }] as unknown as typeof two;
  checkRefused('with two of the same name', /same name/, same);
  const unknown = { authService: 'nobody' };
  checkRefused('open where a mapping names one that is not there', /no auth service "nobody"/, [{}], unknown);
});
