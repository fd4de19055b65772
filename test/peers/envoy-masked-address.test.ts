/** Checks that our masked_remote_address formats networks like Envoy's, so that both count on the same limits. */
import assert from 'node:assert/strict';
import { silentLogger } from '#foundation';
import { maskAddress } from '#http';
import { createLimiter, serveRateLimit } from '#ratelimit';
import { envoyConfiguration, limitCluster, limitFilter } from '../support/programs/envoy-configuration.ts';
import { freePort } from '../support/programs/free-port.ts';
import { describeWith } from '../support/programs/installed.ts';
import { envoy, startProxy } from '../support/programs/proxy-process.ts';
import { testServers } from '../support/serve.ts';
import { startUpstream } from '../support/upstream.ts';

const [ipv4, ipv6] = [20, 52];

/** An Envoy that asks the limiter before it forwards a request. */
function asking(port: number, limits: number, target: number): string {
  const action = { masked_remote_address: { v4_prefix_mask_len: ipv4, v6_prefix_mask_len: ipv6 } };
  return envoyConfiguration({
    port,
    target,
    manager: { use_remote_address: true, xff_num_trusted_hops: 1 },
    filters: [limitFilter({ domain: 'edge', timeout: '5s', failure_mode_deny: true })],
    route: { rate_limits: [{ actions: [action] }] },
    clusters: [limitCluster(limits)],
  });
}

describeWith('envoy', 'a masked address', () => {
  const servers = testServers();

  it('has the same text as in Envoy', async () => {
    const asked: unknown[] = [];
    const limiter = createLimiter({ limits: [] });
    const limits = await serveRateLimit({
      limiter: {
        shouldRateLimit(request) {
          asked.push(request.descriptors[0]?.entries[0]);
          return limiter.shouldRateLimit(request);
        },
      },
      port: 0,
      logger: silentLogger,
    });
    servers.later(() => limits.close());
    const upstream = await startUpstream(servers);
    const port = await freePort();
    const proxy = await startProxy(envoy, asking(port, limits.port, upstream.port), port);
    servers.later(proxy.remove);
    const addresses = [
      '203.0.113.7',
      '10.1.255.255',
      '2001:db8:7:ffff::1',
      '2001:db8::7',
      '::1',
      '2001:0:0:1::',
      'fe80::1',
    ];
    for (const address of addresses) {
      const { status } = await fetch(`http://127.0.0.1:${port}/`, { headers: { 'X-Forwarded-For': address } });
      assert.equal(status, 200, address);
    }
    assert.deepEqual(
      asked,
      addresses.map((one) => ({ key: 'masked_remote_address', value: maskAddress(one, { ipv4, ipv6 }) })),
    );
  });
});
