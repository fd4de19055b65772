/** The rate-limit port under third-party tools: grpcurl, which uses reflection, and h2spec, which breaks HTTP/2's rules. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createServer } from 'node:http2';
import { promisify } from 'node:util';
import { createLimiter, serveRateLimit } from '#ratelimit';
import { desksOf, mappingRecord } from '../support/desks.ts';
import { domain, limit, node } from '../support/limits.ts';
import { describeWith } from '../support/programs/installed.ts';
import { testServers } from '../support/serve.ts';
import { h2specFailures } from './h2spec.ts';

const run = promisify(execFile);

const services = ['envoy.service.ratelimit.v3.RateLimitService', 'pb.lyft.ratelimit.RateLimitService'];

/** The cases in which h2spec expects a body, but a gRPC error has only headers. */
const withoutBody = [
  '2 Sends a WINDOW_UPDATE frame on half-closed (remote) stream',
  '2 Sends a PRIORITY frame on half-closed (remote) stream',
];

describe('the rate-limit port', () => {
  const servers = testServers(after);
  const openDesk = desksOf(servers);
  const ways = ['directly', 'through the gateway'] as const;
  const ports = { directly: 0, 'through the gateway': 0 };

  before(async () => {
    const limits = [domain('edge', node('client', limit(2, 'day')))];
    const server = await serveRateLimit({ limiter: createLimiter({ limits }), port: 0, logger: { error() {} } });
    servers.later(() => server.close(100));
    const records = [mappingRecord('limits', '/', `http://127.0.0.1:${server.port}`, { grpc: true })];
    const { gateway } = await (await openDesk({ demo: false, config: { records } })).listen();
    Object.assign(ports, { directly: server.port, 'through the gateway': gateway.port });
  });

  for (const way of ways)
    describeWith('grpcurl', `for grpcurl, by reflection, ${way}`, () => {
      async function grpcurl(verb: readonly string[], options: readonly string[] = []): Promise<string> {
        const { stdout } = await run('grpcurl', ['-plaintext', ...options, `127.0.0.1:${ports[way]}`, ...verb]);
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
          const descriptors = [{ entries: [{ key: 'client', value: `${way} ${service}` }] }];
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
    // h2spec waits two seconds for a response by default, which is too short on a busy machine.
    const failures = (port: number) => h2specFailures(port, ['generic', 'hpack', '--timeout', '5']);

    it("passes the same cases as Node's own server, except those that expect a body", async () => {
      const node = await servers.listen(createServer((_request, response) => response.end('ok')));
      assert.deepEqual(await failures(node.port), []);
      assert.deepEqual(await failures(ports.directly), withoutBody);
    });
  });
});
