/** Authentication by an auth service in this process: what it is asked, and what its decisions mean. */
import assert from 'node:assert/strict';
import Koa, { type Context } from 'koa';
import type { AuthCheck, AuthDecision, AuthRequest } from '#auth';
import { attributesOf } from '#gateway';
import { Problem } from '#http';
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
      it('gets the method, the original path and the headers, without an identity that the client made up', async () => {
        const heard: AuthRequest[] = [];
        const { get } = await setUp((request) => {
          heard.push({ ...request, headers: { ...request.headers } });
          return give(allowed);
        });
        await get({ Authorization: 'Basic eA==', 'X-Travel-User': 'admin' });
        const [request] = heard;
        assert.equal(request?.method, 'GET');
        assert.equal(request?.url, '/v1/hotels/x?y=1');
        assert.equal(request?.headers.authorization, 'Basic eA==');
        assert.equal(request?.headers['x-travel-user'], undefined);
      });

      it('sets the identity header of the request', async () => {
        const { get, upstream, edge } = await setUp(() => give(allowed));
        assert.equal((await get()).status, 200);
        assert.equal(upstream.only().headers['x-travel-user'], 'demo');
        assert.equal(upstream.only().headers['x-other'], undefined);
        assert.deepEqual(edge.gateway.snapshot().auth, { allowed: 1, denied: 0, error: 0 });
      });

      it('refuses with the error body and the challenge', async () => {
        const { get, upstream, edge } = await setUp(() => give(denied));
        const answer = await get();
        assert.equal(answer.status, 401);
        assert.equal(answer.headers.get('www-authenticate'), 'Basic realm="x"');
        assert.deepEqual(await answer.json(), { code: 401, message: '401: Unauthorized' });
        assert.equal(upstream.reached.length, 0);
        assert.deepEqual(edge.gateway.snapshot().auth, { allowed: 0, denied: 1, error: 0 });
        assert.deepEqual(edge.log, []);
      });

      it('refuses with the body of the decision', async () => {
        const body = Buffer.from('<p>no</p>');
        const { get } = await setUp(() =>
          give({ outcome: 'deny', status: 403, headers: { 'content-type': 'text/html' }, body }),
        );
        const answer = await get();
        assert.deepEqual([answer.status, answer.headers.get('content-type')], [403, 'text/html']);
        assert.equal(await answer.text(), '<p>no</p>');
      });

      it('refuses with 503 without a decision, and writes the reason only to the log', async () => {
        const { get, upstream, edge } = await setUp(() => give(failed));
        const answer = await get();
        assert.deepEqual([answer.status, answer.headers.get('retry-after')], [503, '1']);
        assert.ok(!(await answer.text()).includes('memory'));
        assert.equal(upstream.reached.length, 0);
        const [line] = edge.log;
        assert.equal(line?.level, 'warn');
        assert.equal(line?.fields['reason'], 'out of memory');
      });

      it('goes on without a decision with failure_mode_allow, and says so in the log', async () => {
        const { get, upstream, edge } = await setUp(() => give(failed), {
          authService: authRecordOf({ failureModeAllow: true }),
        });
        assert.equal((await get({ 'X-Travel-User': 'admin' })).status, 200);
        assert.equal(upstream.only().headers['x-travel-user'], undefined);
        assert.deepEqual(
          edge.log.map(({ fields }) => fields['allowed']),
          [true],
        );
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

  it('is not asked with bypass_auth, but identity headers are stripped all the same', async () => {
    const { get, upstream } = await setUp(() => assert.fail('asked'), { mappings: [mappingOf({ bypassAuth: true })] });
    assert.equal((await get({ 'X-Travel-User': 'admin' })).status, 200);
    assert.equal(upstream.only().headers['x-travel-user'], undefined);
  });
});

describe('the authentication stage', () => {
  function contextOf(): Context {
    const app = new Koa();
    const headers = {};
    return app.createContext(
      { headers, url: '/', method: 'GET', socket: {} } as never,
      { setHeader() {}, destroyed: false } as never,
    ) as Context;
  }

  function stageOf(port: AuthCheck) {
    const lines: LogLine[] = [];
    const counts = { allowed: 0, denied: 0, error: 0 };
    const stages = createAuthStages([{ record: authRecordOf(), port }], {
      resolve: () => assert.fail('resolved'),
      holdCluster: () => assert.fail('opened'),
      counts,
      onUnanswered() {},
      logger: recordingLogger(lines),
    });
    const stage = stages.of(mappingOf()) ?? assert.fail();
    return { authenticate: (ctx: Context) => stage.authenticate(ctx, attributesOf(ctx)), counts, lines };
  }

  it('returns a decision of this process at once, without a promise', () => {
    assert.equal(stageOf(() => allowed).authenticate(contextOf()), true);
  });

  it('ends the request of a client that has disconnected', async () => {
    const ctx = contextOf();
    const { authenticate, counts, lines } = stageOf(async () => failed);
    const answer = authenticate(ctx);
    Object.assign(ctx.res, { destroyed: true });
    assert.equal(await answer, false);
    assert.deepEqual(lines, []);
    assert.deepEqual(counts, { allowed: 0, denied: 0, error: 0 });
  });

  it('turns a refusal without a body into the problem of its status', () => {
    for (const status of [401, 403, 404, 429, 503]) {
      const { authenticate } = stageOf(() => ({ outcome: 'deny', status, headers: {} }));
      assert.throws(
        () => authenticate(contextOf()),
        (thrown) => thrown instanceof Problem && thrown.status === status,
      );
    }
  });
});
