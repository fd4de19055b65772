/** The examples, run unchanged. */
import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import request from 'supertest';
import { type Program, startProgram, startServer } from '../support/programs/frontdesk-process.ts';
import { createStranger } from '../support/wire/grpc-stranger.ts';

describe('the example', function () {
  this.timeout(20_000);
  let program: Program | undefined;

  /** The URL that it prints. */
  async function start(name: string): Promise<string> {
    const file = fileURLToPath(new URL(`./${name}.ts`, import.meta.url));
    program = startProgram(file, { env: { PORT: '0' } });
    await program.said(/^\w+:\/\/.*\n/);
    return program.stdout().trim();
  }

  afterEach(async () => {
    program?.signal('SIGTERM');
    const ended = await program?.ended;
    assert.deepEqual(ended && [ended.code, ended.stderr], [0, '']);
  });

  it('embedded: a desk below the path of another app, which keeps its own paths', async () => {
    const url = await start('embedded');
    const { body } = await request(url).get('').expect(200);
    assert.equal(body.url, url);
    const { origin } = new URL(url);
    await request(origin).get('/travel/v1/messages').expect(308).expect('Location', '/travel/v1/messages/');
    await request(origin).get('/travel/v1/hotels').auth('demo', 'demo').expect(200);
    await request(origin).get('/').expect(200, 'The app around it.\n');
  });

  it('own-service: behind auth and limits, with the caller’s name', async () => {
    const url = await start('own-service');
    await request(url).get('').expect(401);
    const ask = () => request(url).get('').auth('ann', 'secret');
    await ask().expect(200, { path: '/7', user: 'ann' });
    await ask().expect(200);
    await ask().expect(429);
  });

  it('instrumentation: spans of the command line, in the trace that the log names', async () => {
    const file = new URL('../../config/recipes/instrumentation.js', import.meta.url).href;
    const server = await startServer(['--only', 'gateway,api'], { env: { NODE_OPTIONS: `--import ${file}` } });
    program = server;
    await request(server.gatewayUrl).get('/v1/messages/1').expect(200);
    await server.said(/^ {2}name: 'GET \/v1',$/m);
    await server.said(/"msg":"request"/);
    const [, spans] = /^ {2}traceId: '([\da-f]{32})',$/m.exec(server.stdout()) ?? [];
    assert.ok(spans !== undefined && server.stdout().includes(`"traceId":"${spans}"`));
  });

  it('rate-limit-service: a server that any gRPC client can use through reflection', async () => {
    const stranger = createStranger(await start('rate-limit-service'));
    const user = { domain: 'shop', descriptors: [{ entries: [{ key: 'user', value: 'ann' }] }] };
    const codes: unknown[] = [];
    for (let sent = 0; sent < 4; sent += 1) {
      const answer = await stranger.call('envoy.service.ratelimit.v3.RateLimitService', 'ShouldRateLimit', user);
      codes.push('overallCode' in answer && answer.overallCode);
    }
    stranger.close();
    assert.deepEqual(codes, ['OK', 'OK', 'OK', 'OVER_LIMIT']);
  });
});
