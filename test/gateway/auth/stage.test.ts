/** Authentication without a decision, or with a decision that arrives after the client has disconnected. */
import assert from 'node:assert/strict';
import Koa, { type Context } from 'koa';
import type { AuthCheck, AuthDecision } from '#auth';
import { createOutageLog } from '#foundation';
import { attributesOf } from '#gateway';
import { createAuthStages } from '../../../src/gateway/auth/stage.ts';
import { authRecordOf, type LogLine, mappingOf, recordingLogger, remote, startEdge } from '../../support/edge.ts';
import { testServers } from '../../support/serve.ts';
import { startUpstream } from '../../support/upstream.ts';

const allowed: AuthDecision = { outcome: 'allow', headers: { 'x-travel-user': 'demo' } };
const failed: AuthDecision = { outcome: 'error', reason: 'out of memory' };

describe('authentication without a decision', () => {
  const servers = testServers();

  for (const [when, authPort] of [
    ['synchronously', () => failed],
    ['asynchronously', async () => failed],
  ] as const) {
    /** `expected`: the status, Retry-After, and how many requests reach the service. */
    function check(what: string, failureModeAllow: boolean, ...expected: readonly unknown[]) {
      it(`${what}, and logs the reason of a service that fails ${when}`, async () => {
        const upstream = await startUpstream(servers);
        const authService = authRecordOf({ failureModeAllow });
        const edge = await startEdge(servers, { authService, authPort, upstream });
        const response = await fetch(`${edge.origin}/v1/hotels`, { headers: { 'X-Travel-User': 'admin' } });
        assert.deepEqual([response.status, response.headers.get('retry-after'), upstream.reached.length], expected);
        assert.ok(!(await response.text()).includes('memory'));
        assert.equal(upstream.reached[0]?.headers['x-travel-user'], undefined);
        const decisions = edge.log.filter(({ fields }) => 'allowed' in fields);
        const logged = decisions.map(({ level, fields }) => [level, fields['reason'], fields['allowed']]);
        assert.deepEqual(logged, [['warn', 'out of memory', failureModeAllow]]);
      });
    }

    check('rejects with 503', false, 503, '1', 0);
    check('continues without an identity with failure_mode_allow', true, 200, null, 1);
  }

  const user = (name: unknown) => ({ outcome: 'allow', headers: { 'x-travel-user': name } });
  for (const [what, port, reason] of [
    ['does not respond', () => new Promise(() => {}), 'it did not respond within 20 ms'],
    ['throws', () => assert.fail('out of memory'), 'out of memory'],
    ['rejects', () => Promise.reject({ code: 7 }), '{ code: 7 }'],
    ['returns undefined', () => undefined, 'it returned undefined, which is not a valid decision'],
    ['returns true', async () => true, 'it returned a boolean, which is not a valid decision'],
    ['allows without headers', () => ({ outcome: 'allow' }), 'it returned { outcome }, which is not a valid decision'],
    ['allows with a list of headers', () => ({ outcome: 'allow', headers: [] }), /which is not a valid decision$/],
    ['returns a list', () => [1], 'it returned a list, which is not a valid decision'],
    ['names no user', () => user(undefined), /which is not a valid decision$/],
    [
      'names a user that HTTP cannot carry',
      async () => user('secret\r\nx-role: admin'),
      'it returned { outcome, headers }, which is not a valid decision',
    ],
    ['denies without a status', () => ({ outcome: 'deny', headers: {} }), /which is not a valid decision$/],
    ...[100, 600, 403.5].map(
      (status) =>
        [
          `denies with the status ${status}`,
          () => ({ outcome: 'deny', status, headers: {} }),
          /which is not a valid decision$/,
        ] as const,
    ),
    [
      'denies with a header that HTTP cannot carry',
      () => ({ outcome: 'deny', status: 401, headers: { 'Set-Cookie': ['a=1', 'b=\n'] } }),
      /which is not a valid decision$/,
    ],
  ] as const)
    it(`rejects with 503 when a custom auth service ${what}`, async () => {
      const upstream = await startUpstream(servers);
      const authService = authRecordOf({ timeoutMs: 20 });
      const edge = await startEdge(servers, { authService, authPort: port as AuthCheck, upstream });
      assert.equal((await fetch(`${edge.origin}/v1/hotels`)).status, 503);
      const reasons = edge.log.filter(({ fields }) => 'allowed' in fields).map(({ fields }) => fields['reason']);
      assert.deepEqual([reasons.length, upstream.reached.length], [1, 0]);
      if (typeof reason === 'string') assert.equal(reasons[0], reason);
      else assert.match(String(reasons[0]), reason);
    });

  it('hides the password from the service with remove_authorization, except on mappings without auth', async () => {
    for (const [removeAuthorization, bypassAuth, expected] of [
      [true, false, undefined],
      [false, false, 'Basic ZGVtbzpkZW1v'],
      [true, true, 'Basic ZGVtbzpkZW1v'],
    ] as const) {
      const upstream = await startUpstream(servers);
      const authService = authRecordOf({ removeAuthorization });
      const edge = await startEdge(servers, {
        authService,
        authPort: () => allowed,
        upstream,
        mapping: { bypassAuth },
      });
      await fetch(`${edge.origin}/v1/hotels`, { headers: { Authorization: 'Basic ZGVtbzpkZW1v' } });
      assert.equal(upstream.only().headers.authorization, expected);
    }
  });

  it('rejects requests for built-in routes, even with failure_mode_allow', async () => {
    const run = async () => assert.fail('opened');
    const edge = await startEdge(servers, {
      authService: authRecordOf({ failureModeAllow: true }),
      authPort: () => failed,
      internalRoutes: [{ name: 'diag', prefix: '/gateway/v0/diag', forAdmins: true, run }],
      targets: { hotel: remote(await startUpstream(servers)) },
    });
    assert.equal((await fetch(`${edge.origin}/v1/hotels`)).status, 200);
    const response = await fetch(`${edge.origin}/gateway/v0/diag/`);
    assert.deepEqual([response.status, response.headers.get('retry-after')], [503, '1']);
  });
});

describe('the authentication stage', () => {
  function setUp(port: AuthCheck, clock?: () => number) {
    const log: LogLine[] = [];
    const outageLog = { logger: recordingLogger(log), ended: 'it is responding again', ...(clock && { clock }) };
    const counts = { allowed: 0, denied: 0, error: 0 };
    const stages = createAuthStages([{ record: authRecordOf(), port }], {
      resolve: () => assert.fail('resolved'),
      acquireCluster: () => assert.fail('opened'),
      counts,
      adminUsers: [],
      identityHeaders: [],
      onError() {},
      acquireOutageLog: () => createOutageLog(outageLog),
    });
    const ctx = new Koa().createContext(
      { headers: {}, url: '/', method: 'GET', socket: {} } as never,
      { setHeader() {}, destroyed: false } as never,
    ) as Context;
    return { ctx, counts, log, authenticate: () => stages.of(mappingOf())?.authenticate(ctx, attributesOf(ctx)) };
  }

  it('returns a decision from this process without a promise', () => {
    assert.equal(setUp(() => allowed).authenticate(), 'continue');
  });

  it('stops the request when the client has disconnected', async () => {
    const { authenticate, ctx, counts, log } = setUp(async () => failed);
    const decision = authenticate();
    Object.assign(ctx.res, { destroyed: true });
    assert.deepEqual([await decision, log, counts], ['done', [], { allowed: 0, denied: 0, error: 0 }]);
  });

  for (const last of [allowed, { outcome: 'deny', status: 401, headers: {} }] as const)
    it(`logs the end of an outage with a decision (${last.outcome}), and not with a failure`, () => {
      const decisions: AuthDecision[] = [failed, failed, last];
      let nowMs = 0;
      const { authenticate, log } = setUp(
        () => decisions.shift() as AuthDecision,
        () => nowMs,
      );
      while (decisions.length > 0) {
        nowMs += 10_000;
        try {
          authenticate();
        } catch {}
      }
      const lines = log.map(({ message }) => message);
      assert.deepEqual(lines, ['the auth service returned no decision', 'it is responding again']);
    });
});
