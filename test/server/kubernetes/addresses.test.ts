/** The addresses of a cluster's Services in a gateway: how references are read, and what follows when they change. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import { status } from '@grpc/grpc-js';
import request from 'supertest';
import { formatExplanation } from '#explain';
import { createResolve, describeTarget } from '#gateway';
import type { ServiceAddresses } from '#kubernetes';
import { resolveOptions } from '#server';
import type { AuthServiceInput, FrontdeskOptions, MappingInput } from '../../../src/index.ts';
import { openFrontdesk } from '../../../src/server/frontdesk.ts';
import { createClusterAddresses } from '../../../src/server/kubernetes/addresses.ts';
import { authRecord, demoRecord, limitRecord, mappingRecord } from '../../support/desks.ts';
import { respond, startHttp2 } from '../../support/http2-services.ts';
import { addressesAt } from '../../support/kubernetes/addresses.ts';
import { testServers } from '../../support/serve.ts';
import { startUpstream } from '../../support/upstream.ts';
import { createHeldMiddleware, eventually } from '../../support/waiting.ts';
import { connectGrpc, startGrpcService, unary } from '../../support/wire/grpc-peers.ts';

const at = ({ port }: { readonly port: number }) => `127.0.0.1:${port}`;

describe('a reference to a Service of a cluster', () => {
  const services: readonly ServiceAddresses[] = [
    addressesAt(['10.0.0.1:8080', '10.0.0.2:8080']),
    addressesAt([], { name: 'car' }),
    addressesAt([], {
      name: 'shuttle',
      ports: [
        { name: 'http', port: 80, addresses: ['10.0.0.3:8080'] },
        { name: 'https', port: 443, addresses: ['10.0.0.3:8443'] },
        { name: 'admin', port: 9000, addresses: ['10.0.0.3:9000'] },
      ],
    }),
    addressesAt([], {
      name: 'inner',
      ports: [
        { name: 'a', port: 1, addresses: [] },
        { name: 'b', port: 2, addresses: ['10.0.0.3:9000'] },
      ],
    }),
    addressesAt([], {
      name: 'pods',
      isHeadless: true,
      ports: [{ name: 'http', port: 80, addresses: ['10.0.0.4:8080', '10.0.0.5:9090'] }],
    }),
    addressesAt([], { name: 'outside', hosts: ['hotel.example.com'], ports: [] }),
    addressesAt([], { name: 'none', ports: [] }),
    addressesAt([], { name: 'own', fault: 'has an external name that …' }),
  ];
  const cluster = createClusterAddresses();
  cluster.replace(services);
  const { liveAddresses } = cluster;
  const addresses = { 'pinned.shop': '10.9.9.9:1' };
  const resolve = createResolve({
    isLocal: (name) => name === 'hotel',
    listenerOf: () => undefined,
    addresses,
    liveAddresses,
  });

  function check(reference: string, expected: string) {
    it(`resolves ${reference}: ${expected}`, () => assert.equal(describeTarget(resolve(reference)), expected));
  }

  const both = 'http://10.0.0.1:8080, http://10.0.0.2:8080';
  check('hotel', 'in this process');
  check('hotel.shop', both);
  check('Hotel.Shop', both);
  check('hotel.shop:80', both);
  check('http://hotel.shop.svc/base', 'http://10.0.0.1:8080/base, http://10.0.0.2:8080/base');
  check('hotel.shop.svc.cluster.local:80', both);
  check('_http._tcp.hotel.shop', both);
  check('https://_http._tcp.hotel.shop.svc.cluster.local', 'https://10.0.0.1:8080, https://10.0.0.2:8080');
  check('https://hotel.shop', 'https://10.0.0.1:8080, https://10.0.0.2:8080');
  check('grpc://hotel.shop', 'grpc://10.0.0.1:8080, grpc://10.0.0.2:8080');
  check('shuttle.shop', 'http://10.0.0.3:8080');
  check('https://shuttle.shop', 'https://10.0.0.3:8443');
  check('shuttle.shop:9000', 'http://10.0.0.3:9000');
  check('_admin._tcp.shuttle.shop', 'http://10.0.0.3:9000');
  check('car.shop', 'no address: no ready endpoint');
  check('hotel.shop:8080', 'no address: Service hotel in the namespace shop has no port 8080: it has http (80)');
  check(
    '_admin._tcp.hotel.shop',
    'no address: Service hotel in the namespace shop has no port admin: it has http (80)',
  );
  check('inner.shop', 'no address: Service inner in the namespace shop has several ports, so name one: a (1), b (2)');
  check('none.shop', 'no address: Service none in the namespace shop has no port for TCP');
  check('pods.shop', 'http://10.0.0.4:8080, http://10.0.0.5:9090');
  check('pods.shop:9090', 'http://10.0.0.5:9090');
  check('pods.shop:1', 'no address: Service pods in the namespace shop has no port 1: it has http (80)');
  check('outside.shop', 'http://hotel.example.com:80');
  check('https://outside.shop:8443', 'https://hotel.example.com:8443');
  check('own.shop:9', 'no address: Service own in the namespace shop has an external name that …');
  check('absent.shop', 'no address: the cluster has no Service absent in the namespace shop');
  check('_http._tcp.absent.elsewhere', 'no address: the cluster has no Service absent in the namespace elsewhere');
  check('hotel.example', 'http://hotel.example:80');
  check('api.hotel.shop', 'http://api.hotel.shop:80');
  check('10.0.0.1', 'http://10.0.0.1:80');
  check('pinned.shop', 'http://10.9.9.9:1');

  for (const [reference, remedy] of [
    ['car.shop', /^Look at its pods, which kubectl get endpointslices -n shop -l .*=car lists\.$/],
    ['hotel.shop:8080', /^Correct the port in the record, or add it to the Service\.$/],
    ['inner.shop', /^Write it after the name, such as service: inner:a$/],
    ['none.shop', /^Add one to it, or name another Service\.$/],
    ['own.shop', /^Correct its external name\.$/],
    ['absent.shop', /^Create it, or correct the name in the record\.$/],
  ] as const)
    it(`says what to do about ${reference}, which has no address`, () => {
      const target = resolve(reference);
      assert.match((target.kind === 'remote' && target.whyEmpty?.()?.remedy) || '', remedy);
    });

  it('expects the name of the Service on the certificate, without the name of a port', () => {
    for (const [reference, name] of [
      ['https://hotel.shop', 'hotel.shop'],
      ['https://_http._tcp.hotel.shop.svc', 'hotel.shop.svc'],
      ['https://outside.shop', 'outside.shop'],
    ] as const) {
      const target = resolve(reference);
      assert.equal(target.kind === 'remote' && target.serverName, name);
    }
  });

  it('returns the same array until one of its addresses changes, while Services come and go', () => {
    const changing = createClusterAddresses();
    const own = createResolve({
      isLocal: () => false,
      listenerOf: () => undefined,
      addresses: {},
      liveAddresses: changing.liveAddresses,
    });
    const target = own('hotel.shop');
    assert.ok(target.kind === 'remote');
    const { origins } = target;
    assert.deepEqual(origins(), ['http://hotel.shop:80']);
    changing.apply([{ namespace: 'shop', name: 'hotel', addresses: addressesAt(['10.0.0.1:1']) }]);
    const known = origins();
    assert.deepEqual(known, ['http://10.0.0.1:1']);
    changing.apply([{ namespace: 'shop', name: 'car', addresses: addressesAt(['10.0.0.2:1'], { name: 'car' }) }]);
    assert.equal(origins(), known);
    const admin = { name: 'admin', port: 80, addresses: ['10.0.0.1:1'] };
    changing.apply([{ namespace: 'shop', name: 'hotel', addresses: addressesAt([], { ports: [admin] }) }]);
    assert.equal(origins(), known);
    changing.replace([addressesAt([], { name: 'car' })]);
    assert.deepEqual(origins(), []);
    changing.replace([]);
    assert.deepEqual(origins(), ['http://hotel.shop:80']);
  });

  it('lists for a thread what the changes have led to', () => {
    const [all, copy] = [createClusterAddresses(), createClusterAddresses()];
    all.onChange(copy.apply);
    all.replace(services);
    assert.deepEqual(copy.snapshot(), services);
    assert.equal(all.snapshot(), all.snapshot());
    all.replace(services.slice(1));
    assert.deepEqual(copy.snapshot(), services.slice(1));
  });
});

describe('a gateway of a cluster', () => {
  const servers = testServers();

  interface Opened extends FrontdeskOptions {
    readonly addresses?: readonly string[];
  }

  async function open(records: readonly object[], { addresses = [], ...options }: Opened = {}) {
    const lines: { readonly fields: object; readonly message: string | undefined }[] = [];
    const line = (fields: object, message?: string) => void lines.push({ fields, message });
    const config = { records: records as MappingInput[], users: [demoRecord] };
    const setup = await resolveOptions({
      port: 0,
      only: ['gateway'],
      adminUsers: ['demo'],
      logger: { info: line, warn: line, error: line },
      ...options,
      config: { ...config, ...(options.config as object | undefined) },
    });
    const clusterAddresses = createClusterAddresses();
    const set = (list: readonly string[], fields: Partial<ServiceAddresses> = {}) => {
      const changed = addressesAt(list, fields);
      clusterAddresses.apply([{ namespace: changed.namespace, name: changed.name, addresses: changed }]);
    };
    set(addresses);
    const desk = await openFrontdesk({ ...setup, clusterAddresses });
    servers.later(desk.close);
    const { gateway } = await desk.listen();
    assert.ok(gateway !== undefined);
    const text = () =>
      lines.map(({ fields, message }) => `${message} ${String(Reflect.get(fields, 'err') ?? '')}`).join('\n');
    return { desk, gateway, client: request(gateway.url), set, text, clusterAddresses };
  }

  const app = (more: Partial<MappingInput> = {}) => mappingRecord('app', '/', 'hotel.shop', more);

  it('calls the addresses of the moment', async () => {
    const [first, second] = [await startUpstream(servers), await startUpstream(servers)];
    const { client, set } = await open([app()], { addresses: [at(first)] });
    await client.get('/a').expect(200);
    set([at(second)]);
    for (const path of ['/b', '/c']) await client.get(path).expect(200);
    assert.deepEqual([first.reached.length, second.reached.length], [1, 2]);
  });

  it('lets a request end at an address that has left, and closes the connection after it', async () => {
    const held = createHeldMiddleware();
    const closed: unknown[] = [];
    const leaving = await servers.http((req, res) => {
      req.socket.once('close', () => closed.push(req.url));
      const ctx = { path: req.url, body: '' };
      void held.hold(ctx as never).then(() => res.end(ctx.body));
    });
    const staying = await startUpstream(servers);
    const { client, set } = await open([app()], { addresses: [at(leaving)] });
    const running = client
      .get('/held')
      .expect(200)
      .then(({ text }) => text);
    await held.reached;
    set([at(staying)]);
    await client.get('/next').expect(200);
    assert.deepEqual(closed, []);
    held.release();
    assert.equal(await running, '/held');
    await eventually(() => assert.deepEqual(closed, ['/held']));
  });

  for (const http2 of [false, true])
    it(`loses no request over HTTP/${http2 ? '2' : '1.1'} while the addresses change`, async () => {
      const reached = [0, 0, 0, 0];
      const start = (index: number) => {
        const count = () => {
          reached[index] = (reached[index] ?? 0) + 1;
        };
        if (!http2)
          return startUpstream(servers, (res) => {
            count();
            setImmediate(() => res.end('ok'));
          });
        return startHttp2(servers, (stream) => {
          count();
          setImmediate(() => respond(stream));
        });
      };
      const upstreams = await Promise.all(reached.map((_, index) => start(index)));
      const { gateway, set } = await open([app({ http2 })], { addresses: upstreams.slice(0, 1).map(at) });
      let changes = 0;
      const timer = setInterval(() => {
        changes += 1;
        set(upstreams.filter((_, index) => (changes >> index) % 2 === 1 || index === changes % 4).map(at));
      }, 10);
      servers.later(() => clearInterval(timer));
      let sent = 0;
      async function send(): Promise<void> {
        for (; changes < 50 || sent < 500; sent += 1) {
          const response = await fetch(gateway.url, sent % 3 === 0 ? { method: 'POST', body: 'order' } : {});
          assert.equal(`${response.status} ${await response.text()}`, '200 ok');
        }
      }
      await Promise.all(Array.from({ length: 8 }, send));
      assert.ok(reached.every((count) => count > 0));
      assert.equal(
        reached.reduce((sum, count) => sum + count, 0),
        sent,
      );
    });

  it('calls this machine only for a Service of a trusted namespace', async () => {
    const upstream = await startUpstream(servers);
    const { client, set, text } = await open([app()]);
    set([at(upstream)]);
    await client.get('/').expect(200);
    set([]);
    await client.get('/').expect(503);
    set([at(upstream)], { isUntrusted: true });
    await client.get('/').expect(503).expect('Retry-After', '5');
    assert.match(text(), /127\.0\.0\.1 is the machine of frontdesk, .*trusted namespaces/);
    assert.equal(upstream.reached.length, 1);
  });

  it('has its requests counted on this machine only by a Service of a trusted namespace', async () => {
    let connections = 0;
    const limiter = await servers.tcp((socket) => {
      connections += 1;
      socket.destroy();
    });
    const upstream = await startUpstream(servers);
    const labels = { api: [{ all: [{ generic_key: { value: 'all' } }] }] };
    const records = [
      mappingRecord('app', '/', upstream.origin, { labels }),
      { ...limitRecord, service: 'hotel.shop', domain: 'api' },
    ];
    const { client, set, text } = await open(records);
    const [literal, name] = [at(limiter), `localhost:${limiter.port}`];
    for (const address of [literal, name]) {
      set([address], { isUntrusted: true });
      await client.get('/').expect(200);
    }
    assert.match(text(), /127\.0\.0\.1 is the machine of frontdesk/);
    assert.equal(connections, 0);
    const trusted = await open(records, { addresses: [literal] });
    await trusted.client.get('/').expect(200);
    assert.notEqual(connections, 0);
  });

  it('calls the address in the settings of a Service whatever its namespace is', async () => {
    const upstream = await startUpstream(servers);
    const { client, set } = await open([app()], { serviceAddresses: { 'hotel.shop': at(upstream) } });
    set(['10.0.0.1:1'], { isUntrusted: true });
    await client.get('/').expect(200);
  });

  it('keeps the ejection of an address when others come and go', async () => {
    const [broken, first, second] = [
      await startUpstream(servers, (res) => void res.writeHead(500).end()),
      await startUpstream(servers),
      await startUpstream(servers),
    ];
    const { client, set } = await open([app({ outlier_detection: { consecutive_5xx: 1 } })], {
      addresses: [broken, first].map(at),
    });
    await eventually(async () => {
      await client.get('/');
      assert.equal(broken.reached.length, 1);
    });
    set([broken, second].map(at));
    for (let call = 0; call < 4; call += 1) await client.get('/').expect(200);
    set([broken, first, second].map(at));
    for (let call = 0; call < 4; call += 1) await client.get('/').expect(200);
    assert.equal(broken.reached.length, 1);
  });

  describe('while a Service has no ready endpoint', () => {
    it('responds with 503 at once, says why in the log, and passes requests as soon as there is one', async () => {
      const upstream = await startUpstream(servers);
      const { client, set, text } = await open([app({ retry_policy: { retry_on: '5xx', num_retries: 5 } })]);
      for (const ask of [client.get('/'), client.post('/').send('body'), client.head('/')])
        await ask.expect(503).expect('Retry-After', /\d/);
      const { body } = await client.get('/').expect(503);
      assert.match(body.info_url, /problems\/upstream-unavailable$/);
      const remedy =
        'Look at its pods, which kubectl get endpointslices -n shop -l kubernetes.io/service-name=hotel lists';
      assert.ok(text().includes(`hotel.shop has no address: no ready endpoint. ${remedy}`), text());
      set([at(upstream)]);
      await client.get('/').expect(200);
      set([]);
      await client.get('/').expect(503);
    });

    it('checks the health of addresses that come later', async () => {
      const upstream = await startUpstream(servers);
      const health = { interval: '1s', health_check: { http: { path: '/health' } } };
      const { client, set } = await open([app({ health_checks: [health] })]);
      await client.get('/').expect(503);
      set([at(upstream)]);
      await eventually(() => assert.ok(upstream.reached.some(({ url }) => url === '/health')));
      await client.get('/').expect(200);
    });

    it('fails a gRPC call with UNAVAILABLE', async () => {
      const service = await startGrpcService(servers, { '/shop.Carts/Add': unary((message) => message) });
      const { gateway, set } = await open([app({ grpc: true })]);
      const caller = connectGrpc(servers, gateway);
      assert.equal((await caller.unary('/shop.Carts/Add', 'a')).code, status.UNAVAILABLE);
      set([service.origin.replace('http://', '')]);
      assert.equal(String((await caller.unary('/shop.Carts/Add', 'a')).message), 'a');
    });

    it('rejects an upgrade with 503', async () => {
      const { gateway } = await open([app({ allow_upgrade: ['websocket'] })]);
      const asked = httpRequest(gateway.url, { headers: { Connection: 'Upgrade', Upgrade: 'websocket' } }).end();
      const [response] = await once(asked, 'response');
      assert.equal(response.resume().statusCode, 503);
    });

    it('sends no copy to a shadow, and serves the request', async () => {
      const upstream = await startUpstream(servers);
      const shadow = mappingRecord('copy', '/', 'hotel.shop', { shadow: true });
      const { client } = await open([mappingRecord('app', '/', upstream.origin), shadow]);
      await client.get('/').expect(200);
    });

    for (const proto of ['http', 'grpc'] as const)
      it(`rejects requests that need an auth service over ${proto}, or passes them with failure_mode_allow`, async () => {
        const upstream = await startUpstream(servers);
        const auth = (more: Partial<AuthServiceInput>) => ({
          ...authRecord,
          auth_service: 'hotel.shop',
          proto,
          ...(proto === 'grpc' && { protocol_version: 'v3' as const }),
          ...more,
        });
        const records = (more: Partial<AuthServiceInput> = {}) => [
          mappingRecord('app', '/', upstream.origin),
          auth(more),
        ];
        const { client, text } = await open(records());
        const { body } = await client.get('/').expect(503);
        assert.match(body.info_url, /problems\/auth-unavailable$/);
        await eventually(() =>
          assert.match(
            text(),
            /AuthService auth has no address: no ready endpoint; until that changes, requests are rejected/,
          ),
        );
        const allowing = await open(records({ failure_mode_allow: true }));
        await allowing.client.get('/').expect(200);
      });

    it('passes or rejects requests that a rate-limit service cannot count, as its record says', async () => {
      const upstream = await startUpstream(servers);
      const labels = { labels: { api: [{ all: [{ generic_key: { value: 'x' } }] }] } } as Partial<MappingInput>;
      for (const [failure_mode_deny, expected] of [
        [false, 200],
        [true, 503],
      ] as const) {
        const { client, text } = await open([
          mappingRecord('app', '/', upstream.origin, labels),
          { ...limitRecord, service: 'hotel.shop', domain: 'api', failure_mode_deny },
        ]);
        await client.get('/').expect(expected);
        await eventually(() => assert.match(text(), /RateLimitService limits has no address: no ready endpoint/));
      }
    });

    it('shows it in the diagnostics and in explanations', async () => {
      const { desk, client, set } = await open([app(), authRecord], { only: ['gateway', 'auth'], authPort: 0 });
      const diagnose = async () => {
        const { body } = await request(desk.app.callback())
          .get('/gateway/v0/diag/')
          .auth('demo', 'demo')
          .set('Accept', 'application/json')
          .expect(200);
        const [route] = body.routes.filter(({ name }: { name: string }) => name === 'app');
        const [[service], [cluster]] = [body.services, body.clusters];
        return [route.health, service.target, cluster.addresses.length, cluster.circuit];
      };
      const isFailing = ['failing', 'no address: no ready endpoint', 0, 'closed'];
      assert.deepEqual(await diagnose(), isFailing);
      await client.get('/').auth('demo', 'demo').expect(503);
      assert.deepEqual(await diagnose(), isFailing);
      const explanation = await desk.explain({ method: 'GET', url: '/a', user: 'demo' });
      const { target } = explanation;
      assert.deepEqual([target?.addresses, target?.no_address], [[], 'no address: no ready endpoint']);
      const text = formatExplanation(explanation);
      assert.match(text, /hotel\.shop \(no address: no ready endpoint\) as GET \/a, so the client gets 503/);
      assert.match(text, /where +no address: no ready endpoint/);
      set(['127.0.0.1:1']);
      assert.deepEqual((await diagnose()).slice(1), ['http://127.0.0.1:1', 1, 'closed']);
    });
  });
});
