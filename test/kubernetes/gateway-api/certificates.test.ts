/** HTTPS at TLS_PORT with certificates from Secrets of a real API server, in a process with one thread and with several. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:tls';
import { type KubernetesServer, startKubernetes } from '../../support/kubernetes/api-server.ts';
import type { KubernetesObject } from '../../support/kubernetes/client.ts';
import { defineGatewayApi, describeWithGatewayApi } from '../../support/kubernetes/gateway-api.ts';
import {
  gateway,
  gatewayClass,
  httpListener,
  httpRoute,
  serviceObject,
  tlsSecret,
  withSpec,
} from '../../support/kubernetes/gateway-objects.ts';
import { resolvesPods, runPods } from '../../support/kubernetes/pods.ts';
import { readRule } from '../../support/kubernetes/rules.ts';
import { type Server, startServer, startSplit } from '../../support/programs/frontdesk-process.ts';
import { testServers } from '../../support/serve.ts';
import { temporaryFiles } from '../../support/temporary-files.ts';
import { startUpstream } from '../../support/upstream.ts';
import { eventually } from '../../support/waiting.ts';
import { makeCertificate } from '../../support/wire/certificate.ts';
import { openHttp2 } from '../../support/wire/http2-client.ts';

const group = 'gateway.networking.k8s.io';

describeWithGatewayApi('certificates of Gateways', () => {
  const servers = testServers();
  const shared = testServers(after);
  const writeFiles = temporaryFiles();
  let kubernetes: KubernetesServer;

  before(async function () {
    if ((await makeCertificate(await writeFiles(), 'DNS:a')) === undefined) return this.skip();
    kubernetes = await startKubernetes(shared);
    await defineGatewayApi(kubernetes);
    await kubernetes.grant(
      'frontdesk',
      readRule,
      { apiGroups: [''], resources: ['namespaces', 'secrets'], verbs: ['get', 'list', 'watch'] },
      {
        apiGroups: [group],
        resources: ['gatewayclasses', 'gateways', 'httproutes', 'grpcroutes', 'referencegrants'],
        verbs: ['get', 'list', 'watch'],
      },
    );
    await kubernetes.apply(gatewayClass, serviceObject('orders'));
    await runPods(kubernetes, { name: 'orders' }, [(await startUpstream(shared)).port]);
    const route = httpRoute('orders', [{ backendRefs: [{ name: 'orders', port: 80 }] }]);
    await kubernetes.apply(withSpec(route, { hostnames: [] }));
  });

  function gatewayWith(...listeners: readonly (readonly [hostname: string | undefined, secret: string])[]) {
    const https = listeners.map(([hostname, name], index) => ({
      name: `https-${index}`,
      port: 443,
      protocol: 'HTTPS',
      ...(hostname !== undefined && { hostname }),
      tls: { certificateRefs: [{ name }] },
    }));
    return gateway('edge', [httpListener, ...https]);
  }

  /** A Secret with a new certificate, whose CN is `subject`. */
  async function secret(name: string, subject: string): Promise<KubernetesObject> {
    const made = await makeCertificate(await writeFiles(), `DNS:${subject}`, { subject: `/CN=${subject}` });
    return tlsSecret(name, made ?? assert.fail());
  }

  async function environment() {
    const KUBECONFIG = await kubernetes.kubeconfig();
    return { KUBECONFIG, KUBERNETES_GATEWAY_API: 'true', TLS_PORT: '0', ADMIN_PORT: '0', ...resolvesPods };
  }

  async function connectTo({ gatewayTlsUrl }: Server, servername: string) {
    const { port } = new URL(gatewayTlsUrl);
    const socket = connect({ port: Number(port), host: '127.0.0.1', servername, rejectUnauthorized: false });
    servers.later(() => socket.destroy());
    await once(socket, 'secureConnect');
    return { socket, name: socket.getPeerCertificate().subject.CN };
  }

  /** Several connections, of which the threads get some each. */
  async function namesAt(server: Server, servername: string): Promise<readonly unknown[]> {
    const all = await Promise.all(Array.from({ length: 8 }, () => connectTo(server, servername)));
    for (const { socket } of all) socket.destroy();
    return [...new Set(all.map(({ name }) => name))];
  }

  for (const THREADS of ['1', '2'])
    it(`are served to the hosts of their listeners, and replaced without closing a connection, with THREADS=${THREADS}`, async () => {
      await kubernetes.apply(await secret('shop', 'first'), await secret('others', 'others'));
      const manifest = gatewayWith(['*.shop.example', 'shop'], [undefined, 'others']);
      await kubernetes.apply(manifest);
      const env = { ...(await environment()), THREADS };
      const server = await startServer(['--kubernetes'], { env, cwd: '/' });
      servers.later(server.stop);
      await eventually(async () => assert.deepEqual(await namesAt(server, 'a.b.shop.example'), ['first']), 20);
      assert.deepEqual(await namesAt(server, 'unknown.example'), ['others']);
      const { socket } = await connectTo(server, 'www.shop.example');

      await kubernetes.apply(await secret('shop', 'second'));
      await eventually(async () => assert.deepEqual(await namesAt(server, 'a.b.shop.example'), ['second']), 20);
      socket.write('GET /a HTTP/1.1\r\nHost: www.shop.example\r\n\r\n');
      assert.match(String(await once(socket, 'data')), /^HTTP\/1\.1 200 /);
      const client = openHttp2(server.gatewayTlsUrl, { servername: 'www.shop.example', rejectUnauthorized: false });
      servers.later(() => client.session.destroy());
      assert.equal((await client.send({ ':authority': 'www.shop.example' })).status, 200);
      assert.equal((await fetch(`${server.gatewayUrl}/a`)).status, 200);
      const metrics = await (await fetch(`${server.adminUrl}/metrics`)).text();
      assert.match(metrics, /^frontdesk_certificate_expires_timestamp_seconds\{certificate="Secret default\/shop"\} /m);

      await kubernetes.apply(gatewayWith(['shop.example', 'shop']));
      await eventually(() => assert.rejects(connectTo(server, 'www.shop.example'), /handshake failure/), 20);
      await assert.rejects(connectTo(server, 'unknown.example'), /handshake failure/);
      assert.deepEqual(await namesAt(server, 'shop.example'), ['second']);
      await kubernetes.remove(manifest);
      await eventually(() => assert.rejects(connectTo(server, 'shop.example'), /handshake failure/), 20);
      assert.equal((await server.stop()).code, 0);
    });

  it('are served by the gateway of a split frontdesk', async () => {
    await kubernetes.apply(await secret('shop', 'split'), gatewayWith(['shop.example', 'shop']));
    const server = await startSplit(['--kubernetes'], { env: await environment(), cwd: '/' });
    servers.later(server.stop);
    await eventually(async () => assert.deepEqual(await namesAt(server, 'shop.example'), ['split']), 20);
  });
});
