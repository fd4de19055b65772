/** The probes: alive while the process answers, ready while it can serve. */
import assert from 'node:assert/strict';
import Koa from 'koa';
import request from 'supertest';
import { createProblemResponses, createRepresentations, silentLogger } from '#http';
import { createProbes } from '../../src/server/probes.ts';

describe('createProbes', () => {
  const paths = ['/gateway/v0/check_alive', '/gateway/v0/check_ready'];

  /** Both, each below the rendering of problems. */
  function probes(isReady: boolean) {
    return createProbes(async () => isReady, createRepresentations()).map(({ run }) => {
      const app = new Koa().use(createProblemResponses({ logger: silentLogger })).use(run);
      return request(app.callback());
    });
  }

  it('are routes without credentials', () => {
    const routes = createProbes(async () => true, createRepresentations());
    assert.deepEqual(
      routes.map(({ prefix, authenticated }) => [prefix, authenticated]),
      paths.map((path) => [path, false]),
    );
  });

  it('answer 200, and are never cached', async () => {
    const [alive, ready] = probes(true);
    const check = (probe: typeof alive, path = '', status = '') =>
      probe?.get(path).expect(200, { status }).expect('Cache-Control', 'no-store');
    await check(alive, paths[0], 'alive');
    await check(ready, paths[1], 'ready');
  });

  it('answer 503 with Retry-After while the process is alive but not ready', async () => {
    const [alive, ready] = probes(false);
    await alive?.get(paths[0] ?? '').expect(200);
    await ready
      ?.get(paths[1] ?? '')
      .expect(503, { code: 503, message: '503: Service Unavailable' })
      .expect('Retry-After', '1');
  });
});
