/** The rate-limit port under third-party tools: grpcurl, which uses reflection, and h2spec, which breaks HTTP/2's rules. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createServer } from 'node:http2';
import { promisify } from 'node:util';
import { createLimiter, type RateLimitServer, serveRateLimit } from '#ratelimit';
import { domain, limit, node } from '../support/limits.ts';
import { describeWith } from '../support/programs/installed.ts';
import { testServers } from '../support/serve.ts';

const run = promisify(execFile);

const services = ['envoy.service.ratelimit.v3.RateLimitService', 'pb.lyft.ratelimit.RateLimitService'];

/** The cases in which h2spec expects a body, but a gRPC error has only headers. */
const withoutBody = [
  'Sends a WINDOW_UPDATE frame on half-closed (remote) stream',
  'Sends a PRIORITY frame on half-closed (remote) stream',
];

describe('the rate-limit port', () => {
  const servers = testServers(after);
  let server: RateLimitServer;

  before(async () => {
    const limits = [domain('edge', node('client', limit(2, 'day')))];
    server = await serveRateLimit({ limiter: createLimiter({ limits }), port: 0, logger: { error() {} } });
    servers.later(() => server.close(100));
  });

  describeWith('grpcurl', 'for grpcurl, by reflection', () => {
    async function grpcurl(verb: readonly string[], options: readonly string[] = []): Promise<string> {
      const { stdout } = await run('grpcurl', ['-plaintext', ...options, `127.0.0.1:${server.port}`, ...verb]);
      return stdout;
    }

    it('lists its services', async () => {
      assert.deepEqual((await grpcurl(['list'])).trim().split('\n'), [
        'envoy.service.ratelimit.v3.RateLimitService',
        'grpc.health.v1.Health',
        'grpc.reflection.v1.ServerReflection',
        'grpc.reflection.v1alpha.ServerReflection',
        'pb.lyft.ratelimit.RateLimitService',
      ]);
    });

    for (const service of services) {
      it(`describes and calls ${service}`, async () => {
        assert.match(await grpcurl(['describe', service]), /rpc ShouldRateLimit \(/);
        const descriptors = [{ entries: [{ key: 'client', value: service }] }];
        const data = ['-d', JSON.stringify({ domain: 'edge', descriptors, hits_addend: 2 })];
        for (const code of ['OK', 'OVER_LIMIT']) {
          const { overallCode, statuses } = JSON.parse(await grpcurl([`${service}/ShouldRateLimit`], data));
          assert.equal(overallCode, code);
          assert.deepEqual(statuses[0].currentLimit, { requestsPerUnit: 2, unit: 'DAY' });
        }
      });
    }

    it('calls the health service', async () => {
      assert.deepEqual(JSON.parse(await grpcurl(['grpc.health.v1.Health/Check'])), { status: 'SERVING' });
    });
  });

  describeWith('h2spec', 'for h2spec, generic and HPACK', () => {
    /** Returns the names of the failed cases. */
    async function failures(port: number): Promise<readonly string[]> {
      // h2spec waits two seconds for a response by default, which is too short on a busy machine.
      const running = run('h2spec', ['generic', 'hpack', '--timeout', '5', '-p', String(port)]);
      const { stdout } = await running.catch((error: { readonly stdout: string }) => error);
      const [, passed, failed] = /51 tests, (\d+) passed, 0 skipped, (\d+) failed/.exec(stdout) ?? [];
      const [, list = ''] = stdout.split('Failures:');
      const names = [...list.matchAll(/× (?:\d+: )?(.*)$/gm)].map(([, name = '']) => name);
      assert.deepEqual([Number(passed), Number(failed)], [51 - names.length, names.length], stdout);
      return names;
    }

    it("passes the same cases as Node's own server, except those that expect a body", async () => {
      const node = await servers.listen(createServer((_request, response) => response.end('ok')));
      assert.deepEqual(await failures(node.port), []);
      assert.deepEqual(await failures(server.port), withoutBody);
    });
  });
});
