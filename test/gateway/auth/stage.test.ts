/** Authentication by an auth service in this process: the request it gets, and what its decisions mean. */
import assert from 'node:assert/strict';
import Koa, { type Context } from 'koa';
import type { AuthCheck, AuthDecision } from '#auth';
import { attributesOf } from '#gateway';
import { createAuthStages } from '../../../src/gateway/auth/stage.ts';
import {
  authRecordOf,
  type EdgeOptions,
  type LogLine,
  mappingOf,
  recordingLogger,
  remote,
  startEdge,
} from '../../support/edge.ts';
import { testServers } from '../../support/serve.ts';
import { startUpstream } from '../../support/upstream.ts';

const allowed: AuthDecision = { outcome: 'allow', headers: { 'x-travel-user': 'demo', 'x-other': 'theirs' } };
const denied: AuthDecision = { outcome: 'deny', status: 401, headers: { 'WWW-Authenticate': 'Basic realm="x"' } };
const failed: AuthDecision = { outcome: 'error', reason: 'out of memory' };

describe('authentication in this process', () => {
  const servers = testServers();

  async function setUp(authPort: AuthCheck, options: EdgeOptions = {}) {
    const upstream = await startUpstream(servers);
    const edge = await startEdge(servers, {
      authService: authRecordOf(),
      authPort,
      targets: { hotel: remote(upstream) },
      ...options,
    });
    const get = (headers: Record<string, string> = {}) => fetch(`${edge.origin}/v1/hotels/x?y=1`, { headers });
    return { upstream, edge, get };
  }

  for (const [when, give] of [
    ['at once', (answer: AuthDecision) => answer],
    ['later', async (answer: AuthDecision) => answer],
  ] as const) {
    describe(`that decides ${when}`, () => {
      it('refuses with the error body and the challenge', async () => {
        const { get, upstream, edge } = await setUp(() => give(denied));
        const answer = await get();
        assert.deepEqual([answer.status, answer.headers.get('www-authenticate')], [401, 'Basic realm="x"']);
        assert.deepEqual(await answer.json(), { code: 401, message: '401: Unauthorized' });
        assert.deepEqual([upstream.reached, edge.log], [[], []]);
        assert.deepEqual(edge.gateway.snapshot().auth, { allowed: 0, denied: 1, error: 0 });
      });

      it('refuses with 503 without a decision, and writes the reason only to the log', async () => {
        const { get, upstream, edge } = await setUp(() => give(failed));
        const answer = await get();
        assert.deepEqual([answer.status, answer.headers.get('retry-after')], [503, '1']);
        assert.ok(!(await answer.text()).includes('memory'));
        assert.equal(upstream.reached.length, 0);
        assert.deepEqual([edge.log[0]?.level, edge.log[0]?.fields['reason']], ['warn', 'out of memory']);
      });

      it('goes on without a decision with failure_mode_allow, and says so in the log', async () => {
        const authService = authRecordOf({ failureModeAllow: true });
        const { get, upstream, edge } = await setUp(() => give(failed), { authService });
        assert.equal((await get({ 'X-Travel-User': 'admin' })).status, 200);
        assert.equal(upstream.only().headers['x-travel-user'], undefined);
        assert.deepEqual([edge.log.length, edge.log[0]?.fields['allowed']], [1, true]);
      });
    });
  }

  it('refuses requests for routes of the server without an answer, with failure_mode_allow too', async () => {
    const run = async () => assert.fail('opened');
    const { edge, get } = await setUp(() => failed, {
      authService: authRecordOf({ failureModeAllow: true }),
      internalRoutes: [{ name: 'diag', prefix: '/gateway/v0/diag', rewrite: '', authenticated: true, run }],
    });
    assert.equal((await get()).status, 200);
    const answer = await fetch(`${edge.origin}/gateway/v0/diag/`);
    assert.deepEqual([answer.status, answer.headers.get('retry-after')], [503, '1']);
  });
});

describe('the authentication stage', () => {
  function setUp(port: AuthCheck) {
    const log: LogLine[] = [];
    const counts = { allowed: 0, denied: 0, error: 0 };
    const stages = createAuthStages([{ record: authRecordOf(), port }], {
      resolve: () => assert.fail('resolved'),
      holdCluster: () => assert.fail('opened'),
      counts,
      onUnanswered() {},
      logger: recordingLogger(log),
    });
    const ctx = new Koa().createContext(
      { headers: {}, url: '/', method: 'GET', socket: {} } as never,
      { setHeader() {}, destroyed: false } as never,
    ) as Context;
    return { ctx, counts, log, authenticate: () => stages.of(mappingOf())?.authenticate(ctx, attributesOf(ctx)) };
  }

  it('returns a decision of this process at once, without a promise', () => {
    assert.equal(setUp(() => allowed).authenticate(), true);
  });

  it('ends the request of a client that has disconnected', async () => {
    const { authenticate, ctx, counts, log } = setUp(async () => failed);
    const decision = authenticate();
    Object.assign(ctx.res, { destroyed: true });
    assert.deepEqual([await decision, log, counts], [false, [], { allowed: 0, denied: 0, error: 0 }]);
  });
});
