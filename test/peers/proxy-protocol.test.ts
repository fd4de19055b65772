/** The PROXY protocol as Envoy sends it, in front of a gateway that decides by the client's address. */
import assert from 'node:assert/strict';
import { desksOf, mappingRecord } from '../support/desks.ts';
import { freePort } from '../support/programs/free-port.ts';
import { describeWith } from '../support/programs/installed.ts';
import { envoy, startProxy } from '../support/programs/proxy-process.ts';
import { testServers } from '../support/serve.ts';
import { startUpstream } from '../support/upstream.ts';
import { rawRequest, sendRaw, statusOf } from '../support/wire/raw-client.ts';

const recipe = (proxy: number, gateway: number, version: string) => `
static_resources:
  listeners:
    - address: { socket_address: { address: 127.0.0.1, port_value: ${proxy} } }
      filter_chains:
        - filters:
            - name: envoy.filters.network.tcp_proxy
              typed_config:
                "@type": type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy
                stat_prefix: gateway
                cluster: gateway
  clusters:
    - name: gateway
      type: STATIC
      transport_socket:
        name: envoy.transport_sockets.upstream_proxy_protocol
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.transport_sockets.proxy_protocol.v3.ProxyProtocolUpstreamTransport
          config: { version: ${version} }
          transport_socket:
            name: envoy.transport_sockets.raw_buffer
            typed_config: { "@type": type.googleapis.com/envoy.extensions.transport_sockets.raw_buffer.v3.RawBuffer }
      load_assignment:
        cluster_name: gateway
        endpoints:
          - lb_endpoints:
              - endpoint: { address: { socket_address: { address: 127.0.0.1, port_value: ${gateway} } } }
`;

describeWith(envoy.command, 'Envoy that sends the PROXY protocol', function () {
  this.timeout(60_000);
  const servers = testServers();
  const open = desksOf(servers);

  for (const version of ['V1', 'V2'] as const)
    it(`names the client to the gateway in ${version}: to its lists of addresses, its log and its service`, async () => {
      const upstream = await startUpstream(servers);
      const records = [
        mappingRecord('all', '/', upstream.origin),
        mappingRecord('others', '/others', upstream.origin, { deny_addresses: ['127.0.0.1'] }),
      ];
      const desk = await open({
        demo: false,
        only: ['gateway'],
        proxyProtocol: true,
        trustedProxies: ['127.0.0.1'],
        config: { records },
      });
      const { gateway } = await desk.listen();
      const port = await freePort();
      const proxy = await startProxy(envoy, recipe(port, gateway.port, version), port);
      servers.later(proxy.remove);
      assert.equal(statusOf(await sendRaw(port, rawRequest('GET /a'))), 200);
      assert.equal(upstream.only().headers['x-forwarded-for'], '127.0.0.1');
      assert.equal(statusOf(await sendRaw(port, rawRequest('GET /others'))), 403);
    });
});
