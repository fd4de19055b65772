/** Access to the state of the gateway: only for administrators, who have a role or are named by a setting. */
import assert from 'node:assert/strict';
import { createFrontdesk, type FrontdeskOptions } from '../../src/index.ts';
import { annRecord, authRecord, call, demoRecord, desksOf } from '../support/desks.ts';
import { testServers } from '../support/serve.ts';
import { startUpstream } from '../support/upstream.ts';

const pages = ['diag/', 'diag/events', 'diag/diagnostics.js', 'diag/diagnostics.json', 'explain?url=/', 'metrics'].map(
  (name) => `/gateway/v0/${name}`,
);

describe('diagnostics, explanations and metrics', () => {
  const servers = testServers();
  const open = desksOf(servers);

  it('are only for administrators: 401 without credentials, 403 with the reason for other users', async () => {
    const desk = await open({ config: { records: [authRecord], users: [annRecord, demoRecord] } });
    for (const path of pages) {
      await call(desk, path).expect(401);
      const { body } = await call(desk, path).auth('ann', 'secret').expect(403);
      assert.match(body.info_url, /\/gateway\/v0\/problems\/admins-only$/, path);
      if (!path.endsWith('events')) await call(desk, path).auth('demo', 'demo').expect(200);
    }
  });

  it('are also for users in ADMIN_USERS', async () => {
    const config = { records: [authRecord], users: [annRecord] };
    const desk = await open({ config, adminUsers: ['ann'] });
    await call(desk, '/gateway/v0/diag/').auth('ann', 'secret').expect(200);
  });

  const elsewhere = async (options: FrontdeskOptions = {}) => {
    const service = await startUpstream(servers, (res, { headers }) =>
      res.writeHead(200, { 'X-Travel-User': String(headers['x-name']) }).end(),
    );
    const record = { ...authRecord, auth_service: service.origin, allowed_request_headers: ['X-Name'] };
    return open({ config: { records: [record], users: [demoRecord] }, ...options });
  };

  it('ignore roles when another auth service identifies the user, and only use ADMIN_USERS', async () => {
    const statusOf = async (name: string, options?: FrontdeskOptions) =>
      (await call(await elsewhere(options), '/gateway/v0/diag/').set('X-Name', name)).status;
    assert.equal(await statusOf('demo'), 403);
    assert.equal(await statusOf('demo', { adminUsers: ['ann'] }), 403);
    assert.equal(await statusOf('demo', { adminUsers: ['demo'] }), 200);
  });

  it('are not served without a default AuthService, even if there is only one', async () => {
    const desk = await open({ config: { records: [{ ...authRecord, default: false }], users: [demoRecord] } });
    for (const path of pages) await call(desk, path).auth('demo', 'demo').expect(404);
  });

  it('reject a name in ADMIN_USERS that no user can have', async () => {
    await assert.rejects(createFrontdesk({ adminUsers: ['jürgen'] }), /adminUsers=.*expected a list of names of users/);
  });
});
