/** Runs the examples unchanged. */
import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import request from 'supertest';
import { mappingRecord } from '../support/desks.ts';
import { type Program, startProgram, startServer } from '../support/programs/frontdesk-process.ts';
import { testServers } from '../support/serve.ts';
import { temporaryFiles } from '../support/temporary-files.ts';
import { startUpstream } from '../support/upstream.ts';
import { createReflectionClient } from '../support/wire/reflection-client.ts';

describe('the examples', () => {
  let program: Program;

  before(() => {
    program = startProgram(fileURLToPath(new URL('./all.ts', import.meta.url)), { env: { PORT: '0' } });
  });

  /** Returns the URL that an example prints. */
  async function printed(pattern: RegExp): Promise<string> {
    await program.waitForOutput(pattern);
    return pattern.exec(program.stdout())?.[0] ?? '';
  }

  it('embedded: mounts a desk in another app, which keeps its own paths', async () => {
    const url = await printed(/^http:.*\/travel\/.*$/m);
    const { body } = await request(url).get('').expect(200);
    assert.equal(body.url, url);
    const { origin } = new URL(url);
    await request(origin).get('/travel/v1/messages').expect(308).expect('Location', '/travel/v1/messages/');
    await request(origin).get('/travel/v1/hotels').auth('demo', 'demo').expect(200);
    await request(origin).get('/').expect(200, 'Hello from the host app.\n');
  });

  it('own-service: protects a service with auth and limits, and passes the name of the user to it', async () => {
    const url = await printed(/^http:.*\/tickets\/.*$/m);
    await request(url).get('').expect(401);
    const ask = () => request(url).get('').auth('ann', 'secret');
    await ask().expect(200, { path: '/7', user: 'ann' });
    await ask().expect(200);
    await ask().expect(429);
  });

  it('rate-limit-service: serves any gRPC client, which can use reflection', async () => {
    const client = createReflectionClient(await printed(/^grpc:.*$/m));
    const user = { domain: 'shop', descriptors: [{ entries: [{ key: 'user', value: 'ann' }] }] };
    const codes: unknown[] = [];
    for (let sent = 0; sent < 4; sent += 1) {
      const answer = await client.call('envoy.service.ratelimit.v3.RateLimitService', 'ShouldRateLimit', user);
      codes.push('overallCode' in answer && answer.overallCode);
    }
    client.close();
    assert.deepEqual(codes, ['OK', 'OK', 'OK', 'OVER_LIMIT']);
  });

  after(async () => {
    program.signal('SIGTERM');
    const { code, stderr } = await program.ended;
    assert.deepEqual([code, stderr], [0, '']);
  });
});

describe('the instrumentation in the recipe', () => {
  const servers = testServers();
  const writeFiles = temporaryFiles();

  it('makes the command-line program emit spans with the trace ID that is in the log', async () => {
    const file = new URL('../../config/recipes/instrumentation.js', import.meta.url).href;
    const { origin } = await startUpstream(servers);
    const mapping = JSON.stringify({ ...mappingRecord('api', '/v1', origin), bypass_auth: true });
    const CONFIG_DIR = await writeFiles({ 'services/api.yaml': mapping });
    const server = await startServer([], { env: { CONFIG_DIR, NODE_OPTIONS: `--import ${file}` } });
    await request(server.gatewayUrl).get('/v1/messages/1').expect(200);
    await server.waitForOutput(/^ {2}name: 'GET \/v1',$/m);
    await server.waitForOutput(/"msg":"request"/);
    const [, spans] = /^ {2}traceId: '([\da-f]{32})',$/m.exec(server.stdout()) ?? [];
    assert.ok(spans !== undefined && server.stdout().includes(`"traceId":"${spans}"`));
    const { code, stderr } = await server.stop();
    assert.deepEqual([code, stderr], [0, '']);
  });
});
