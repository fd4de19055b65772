/** The gateway behind Envoy, and Envoy behind the gateway: what clients get, and what reaches the service. */
import assert from 'node:assert/strict';
import { request as ask } from 'node:http';
import request from 'supertest';
import type { LimitDomainInput } from '#config';
import type { MappingInput } from '../../src/index.ts';
import { authRecord, demoRecord, desksOf, limitRecord, mappingRecord } from '../support/desks.ts';
import { type EnvoyParts, envoyConfiguration } from '../support/programs/envoy-configuration.ts';
import { freePort } from '../support/programs/free-port.ts';
import { describeWith } from '../support/programs/installed.ts';
import { envoy, startProxy } from '../support/programs/proxy-process.ts';
import { type Served, testServers } from '../support/serve.ts';
import { temporaryFiles } from '../support/temporary-files.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';
import { type Certificate, makeCertificate } from '../support/wire/certificate.ts';
import { acceptOf, switchingLines } from '../support/wire/echo-websocket.ts';
import { speak, upgradeRequest } from '../support/wire/peer.ts';
import { rawRequest, sendRaw } from '../support/wire/raw-client.ts';
import { bytesOf, startSwitchingUpstream } from '../support/wire/switching-upstream.ts';

const credentials = ['demo', 'demo'] as const;
const authorization = `Authorization: Basic ${btoa('demo:demo')}`;

/** An Envoy that forwards all requests with the client's address. */
function passOn(parts: EnvoyParts): string {
  const upgrades = [{ upgrade_type: 'websocket' }];
  const manager = { use_remote_address: true, preserve_external_request_id: true, upgrade_configs: upgrades };
  return envoyConfiguration({ ...parts, manager });
}

/** A limit for one client address. */
const limits: LimitDomainInput = {
  domain: 'gateway',
  descriptors: [{ key: 'remote_address', value: '127.0.0.2', rate_limit: { unit: 'day', requests_per_unit: 2 } }],
};

function configFor(service: string, more: Partial<MappingInput>) {
  const byAddress = { rewrite: '', labels: { gateway: [{ by: ['remote_address'] }] }, ...more };
  const mapping = mappingRecord('all', '/', service, byAddress);
  return { records: [mapping, authRecord, limitRecord], limits: [limits], users: [demoRecord] };
}

interface Between {
  readonly isBehind: boolean;
  readonly http2: boolean;
  readonly tls: Certificate | undefined;
}

/** How the gateway takes its part of the connections between itself and Envoy. */
function gatewayBetween({ isBehind, http2, tls }: Between) {
  const options = tls === undefined ? {} : { tlsCert: tls.file, tlsKey: tls.keyFile };
  if (isBehind || !http2) return { scheme: 'http', mapping: { allow_upgrade: ['websocket'] }, options };
  const verified = tls === undefined ? {} : { tls: { ca: tls.file } };
  return { scheme: tls === undefined ? 'http' : 'https', mapping: { ...verified, http2 }, options: {} };
}

interface Gateway extends Served {
  /** Restarts the gateway on the same port. */
  readonly restart: () => Promise<void>;
}

const chains = (['the gateway behind Envoy', 'Envoy behind the gateway'] as const).flatMap((order) =>
  (['HTTP/1.1', 'HTTP/2', 'HTTP/2 over TLS'] as const).map((protocol) => [order, protocol] as const),
);

describeWith('envoy', 'Envoy and the gateway in a chain', () => {
  for (const [order, protocol] of chains) {
    describe(`${order}, with ${protocol} between them`, () => {
      const servers = testServers(after);
      const openDesk = desksOf(servers);
      const writeFiles = temporaryFiles();
      const isBehind = order === 'the gateway behind Envoy';
      const http2 = protocol !== 'HTTP/1.1';
      let tls: Certificate | undefined;
      let upstream: Upstream;
      let gateway: Gateway;
      let front: Served;

      async function startEnvoy(target: number): Promise<Served> {
        const port = await freePort();
        const between = isBehind ? { http2, ca: tls?.file } : { tls };
        const { remove, ...served } = await startProxy(envoy, passOn({ port, target, ...between }), port);
        servers.later(remove);
        return served;
      }

      async function startGateway(target: number): Promise<Gateway> {
        const port = await freePort();
        const { scheme, mapping, options } = gatewayBetween({ isBehind, http2, tls });
        const config = configFor(`${scheme}://127.0.0.1:${target}`, mapping);
        const start = async () => {
          const desk = await openDesk({ demo: false, port, trustedProxies: ['127.0.0.1'], config, ...options });
          await desk.listen();
          return desk;
        };
        let desk = await start();
        const restart = async () => {
          await desk.close();
          desk = await start();
        };
        return { port, origin: `http://127.0.0.1:${port}`, restart };
      }

      /** Starts both proxies in front of a service. */
      async function startBoth(target: number): Promise<Served> {
        if (!isBehind) return startGateway((await startEnvoy(target)).port);
        gateway = await startGateway(target);
        return startEnvoy(gateway.port);
      }

      before(async function () {
        if (protocol === 'HTTP/2 over TLS') {
          tls = await makeCertificate(await writeFiles(), 'IP:127.0.0.1');
          if (tls === undefined) return this.skip();
        }
        upstream = await startUpstream(servers, (res, { url }) => {
          res.writeHead(url.startsWith('/teapot') ? 418 : 200, { 'X-Own': 'yes' }).end(`you asked ${url}`);
        });
        front = await startBoth(upstream.port);
      });

      it("forward methods, paths and responses unchanged, and replace the client's identity header", async () => {
        for (const method of ['get', 'post', 'put', 'patch', 'delete', 'options'] as const) {
          const path = '/teapot/a%2Fb;c/?x=%2F&x';
          const [reached] = await upstream.reachedBy(() =>
            request(front.origin)
              [method](path)
              .auth(...credentials)
              .set('X-Travel-User', 'admin')
              .expect(418, `you asked ${path}`)
              .expect('X-Own', 'yes'),
          );
          assert.deepEqual(
            [reached?.method, reached?.url, reached?.headers['x-travel-user'], reached?.headers.host],
            [method.toUpperCase(), path, 'demo', `127.0.0.1:${front.port}`],
          );
        }
        assert.deepEqual(await upstream.reachedBy(() => request(front.origin).get('/').expect(401)), []);
      });

      it('forward bodies with a known length, in chunks and after 100 Continue', async () => {
        const body = 'x'.repeat(300_000);
        const post = request(front.origin)
          .post('/')
          .auth(...credentials)
          .type('text/plain')
          .send(body)
          .expect(200);
        const [whole] = await upstream.reachedBy(() => post);
        assert.ok(whole?.body === body);
        const chunks = '3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n';
        const chunked = (more: readonly string[]) =>
          rawRequest('POST /', ['Transfer-Encoding: chunked', authorization, ...more], chunks);
        for (const bytes of [chunked([]), chunked(['Expect: 100-continue'])]) {
          const [reached] = await upstream.reachedBy(() => sendRaw(front.port, bytes));
          assert.equal(reached?.body, 'abcde');
        }
      });

      it('keep the request id that the client sent', async () => {
        const get = request(front.origin)
          .get('/')
          .auth(...credentials)
          .set('X-Request-Id', 'a-1');
        const [reached] = await upstream.reachedBy(() => get.expect(200));
        assert.equal(reached?.headers['x-request-id'], 'a-1');
      });

      it('handle 500 concurrent requests', async () => {
        const paths = Array.from({ length: 500 }, (_, index) => `/${index}`);
        const reached = await upstream.reachedBy(() =>
          Promise.all(
            paths.map((path) =>
              request(front.origin)
                .get(path)
                .auth(...credentials)
                .expect(200, `you asked ${path}`),
            ),
          ),
        );
        assert.deepEqual(reached.map(({ url }) => url).toSorted(), paths.toSorted());
      });

      if (isBehind)
        it('respond with 200 or 503 while the gateway restarts, and with 200 afterwards', async () => {
          let isOver = false;
          const statuses = new Set<number>();
          const get = () =>
            request(front.origin)
              .get('/')
              .auth(...credentials);
          const asking = Array.from({ length: 4 }, async () => {
            while (!isOver) statuses.add((await get()).status);
          });
          for (let count = 0; count < 3; count += 1) await gateway.restart();
          isOver = true;
          await Promise.all(asking);
          for (const status of statuses) assert.ok(status === 200 || status === 503, String(status));
          await get().expect(200);
        });

      it('limit clients by their own addresses', async () => {
        const statuses: unknown[] = [];
        for (const localAddress of ['127.0.0.2', '127.0.0.2', '127.0.0.2', '127.0.0.3'])
          statuses.push(await statusFrom(localAddress));
        assert.deepEqual(statuses, [200, 200, 429, 200]);
      });

      function statusFrom(localAddress: string): Promise<number | undefined> {
        const options = { host: '127.0.0.1', port: front.port, localAddress, auth: 'demo:demo', agent: false };
        return new Promise((resolve, reject) => {
          const asked = ask(options, (answer) => answer.resume().on('end', () => resolve(answer.statusCode)));
          asked.on('error', reject).end();
        });
      }

      if (isBehind || !http2)
        it('switch a connection to WebSocket and pass the user name', async () => {
          const switching = await startSwitchingUpstream(servers, (socket, { headers }) => {
            socket.write(bytesOf([...switchingLines, `Sec-WebSocket-Accept: ${acceptOf(headers)}`]));
          });
          const switchingFront = await startBoth(switching.port);
          const next = switching.next();
          const key = { 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==' };
          const handshake = [
            authorization,
            `Sec-WebSocket-Key: ${key['sec-websocket-key']}`,
            'Sec-WebSocket-Version: 13',
          ];
          const client = speak(switchingFront.port, upgradeRequest('/live', handshake));
          const { peer, headers } = await next;
          assert.equal(headers['x-travel-user'], 'demo');
          await client.until('101 Switching Protocols');
          await client.until(acceptOf(key));
          client.socket.write('from the client');
          await peer.until('from the client');
          peer.socket.write('from the service');
          await client.until('from the service');
          client.socket.end();
          await peer.closed;
        });
    });
  }
});
