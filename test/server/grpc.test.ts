/** What a desk does for gRPC calls as for any other request: auth, limits, canaries, shadows, headers, logs and metrics. */
import assert from 'node:assert/strict';
import { Metadata, status } from '@grpc/grpc-js';
import type { FrontdeskOptions, MappingInput, RecordInput } from '../../src/index.ts';
import { authRecord, callAsDemo, demoRecord, desksOf, limitRecord, mappingRecord } from '../support/desks.ts';
import { type LogLine, recordingLogger } from '../support/edge.ts';
import { scrape } from '../support/scrape.ts';
import { testServers } from '../support/serve.ts';
import { startUpstream } from '../support/upstream.ts';
import { eventually } from '../support/waiting.ts';
import { connectGrpc, failing, type HandleCall, readAll, startGrpcService, unary } from '../support/wire/grpc-peers.ts';

const servers = testServers();
const openDesk = desksOf(servers);

const add = '/shop.Carts/Add';
const saying = (text: string) => unary(() => Buffer.from(text));

interface Fields extends FrontdeskOptions {
  readonly mapping?: Partial<MappingInput>;
  readonly records?: readonly RecordInput[];
}

async function open(handle: HandleCall, { mapping, records = [], ...options }: Fields = {}) {
  const service = await startGrpcService(servers, { [add]: handle });
  const own = mappingRecord('carts', '/shop.Carts', service.origin, { grpc: true, ...mapping });
  const log: LogLine[] = [];
  const desk = await openDesk({
    config: { records: [own, ...records], users: [demoRecord], limits },
    adminPort: 0,
    demo: false,
    logger: recordingLogger(log),
    accessLog: 'json',
    ...options,
  });
  const { gateway } = await desk.listen();
  const client = connectGrpc(servers, gateway);
  const requests = () => log.filter(({ message }) => message === 'request').map(({ fields }) => fields);
  return { service, desk, client, log, requests, gateway };
}

const limits = [
  {
    domain: 'gateway',
    descriptors: [{ key: 'x-tenant', rate_limit: { unit: 'year' as const, requests_per_unit: 1 } }],
  },
];

function withMetadata(fields: Readonly<Record<string, string>>): { readonly metadata: Metadata } {
  return { metadata: Metadata.fromHttp2Headers(fields) };
}

describe('a desk, for a gRPC call', () => {
  it('asks for credentials, and names the user to the service', async () => {
    const { client, service } = await open(saying('hi'), { records: [authRecord] });
    assert.equal((await client.unary(add)).code, status.UNAUTHENTICATED);
    const authorization = `Basic ${Buffer.from('demo:demo').toString('base64')}`;
    assert.equal((await client.unary(add, '', withMetadata({ authorization }))).code, status.OK);
    assert.deepEqual(service.calls[0]?.get('x-travel-user'), ['demo']);
  });

  it('limits clients, who get RESOURCE_EXHAUSTED and the time to wait', async () => {
    const labels = { gateway: [{ all: [{ 'x-tenant': { header: 'X-Tenant' } }] }] };
    const { client } = await open(saying('hi'), { mapping: { labels }, records: [limitRecord] });
    const options = withMetadata({ 'x-tenant': 'ann' });
    assert.equal((await client.unary(add, '', options)).code, status.OK);
    const { code, trailers } = await client.unary(add, '', options);
    assert.equal(code, status.RESOURCE_EXHAUSTED);
    assert.match(String(trailers.get('retry-after')), /^\d+$/);
    assert.equal((await client.unary(add, '', withMetadata({ 'x-tenant': 'bob' }))).code, status.OK);
  });

  it('edits metadata, in both directions', async () => {
    const mapping = {
      add_request_headers: { 'X-By': 'desk' },
      remove_request_headers: ['X-Debug'],
      add_response_headers: { 'X-Served': 'desk' },
      compress: true,
    };
    const { client, service } = await open(saying('hi'), { mapping });
    const { headers } = await client.unary(add, '', withMetadata({ 'x-debug': '1', 'accept-encoding': 'gzip' }));
    const [sent] = service.calls;
    assert.deepEqual([sent?.get('x-by'), sent?.get('x-debug')], [['desk'], []]);
    assert.deepEqual([headers?.get('x-served'), headers?.get('content-encoding')], [['desk'], []]);
  });

  it('refuses messages of more than max_request_bytes with RESOURCE_EXHAUSTED, also after the response has begun', async () => {
    const { client } = await open((call) => void call.resume().write(Buffer.from('one')), {
      mapping: { max_request_bytes: 1000 },
    });
    const call = client.chat(add);
    call.once('data', () => call.write(Buffer.alloc(2000)));
    const { messages, code } = await readAll(call);
    assert.deepEqual([messages.length, code], [1, status.RESOURCE_EXHAUSTED]);
  });

  it('rewrites the path', async () => {
    const { client } = await open(saying('hi'), { mapping: { prefix: '/v2.Carts', rewrite: '/shop.Carts' } });
    assert.equal((await client.unary('/v2.Carts/Add')).code, status.OK);
    assert.equal((await client.unary('/v2.Carts/Remove')).code, status.UNIMPLEMENTED);
    assert.equal((await client.unary(add)).code, status.UNIMPLEMENTED);
  });

  it('sends a share of the calls to a canary', async () => {
    const other = await startGrpcService(servers, { [add]: saying('canary') });
    const canary = mappingRecord('canary', '/shop.Carts', other.origin, { grpc: true, weight: 50 });
    const { client } = await open(saying('stable'), { records: [canary] });
    const seen = new Set<string>();
    for (let index = 0; index < 40; index += 1) seen.add(String((await client.unary(add)).message));
    assert.deepEqual([...seen].sort(), ['canary', 'stable']);
  });

  it('sends a shadow copies of unary calls, but not of streams', async () => {
    const copied: string[] = [];
    const other = await startGrpcService(servers, {
      [add]: unary((message) => {
        copied.push(String(message));
        return message;
      }),
    });
    const shadow = mappingRecord('copy', '/shop.Carts', other.origin, { grpc: true, shadow: true });
    const { client } = await open(saying('hi'), { records: [shadow] });
    const upload = client.upload(add);
    for (const part of ['a', 'b']) upload.write(Buffer.from(part));
    upload.end();
    await upload.result;
    assert.equal((await client.unary(add, 'a book')).code, status.OK);
    await eventually(() => assert.deepEqual(copied, ['a book']));
    assert.equal(other.calls[0]?.get('te').join(), '');
  });

  it('goes on when the service restarts', async () => {
    const { client, service } = await open(saying('before'));
    assert.equal(String((await client.unary(add)).message), 'before');
    service.server.forceShutdown();
    assert.equal((await client.unary(add)).code, status.UNAVAILABLE);
    await startGrpcService(servers, { [add]: saying('after') }, service.port);
    await eventually(async () => assert.equal(String((await client.unary(add)).message), 'after'));
  });

  it('leaves nothing behind of calls, however they end', async () => {
    const replies: Readonly<Record<string, HandleCall>> = {
      end: (call) => void call.write(Buffer.alloc(10)),
      fail: (call) => void call.emit('error', { code: status.ABORTED, details: '' }),
      large: (call) => void call.write(Buffer.alloc(300_000)),
    };
    const handle: HandleCall = (call) => {
      call.on('data', (message) => replies[String(message)]?.(call)).on('end', () => call.end());
    };
    const fields = { mapping: { bypass_auth: true }, records: [authRecord] };
    const { client, desk, log } = await open(handle, fields);
    type Call = ReturnType<typeof client.chat>;
    const ways: readonly (readonly [message: string, go: (call: Call) => void, code: number])[] = [
      ['end', (call) => call.end(), status.OK],
      ['fail', () => {}, status.ABORTED],
      ['large', (call) => void call.once('data', () => call.cancel()), status.CANCELLED],
      ['cancel', (call) => call.cancel(), status.CANCELLED],
      ['wait', () => {}, status.DEADLINE_EXCEEDED],
    ];
    const calls = Array.from({ length: 20 }, () => ways).flat();
    const ended = calls.map(async ([message, go, code]) => {
      const call = client.chat(add, message === 'wait' ? { deadline: Date.now() + 100 } : {});
      const result = readAll(call);
      call.write(Buffer.from(message));
      go(call);
      return [(await result).code, code];
    });
    for (const [code, expected] of await Promise.all(ended)) assert.equal(code, expected);
    await eventually(async () => {
      const { body } = await callAsDemo(desk, '/gateway/v0/diag/').set('Accept', 'application/json');
      const [cluster] = body.clusters;
      assert.equal(cluster.active_requests, 0);
      assert.equal((await scrape(desk))['frontdesk_requests_in_flight carts'], 0);
    });
    assert.deepEqual(
      log.filter(({ level }) => level === 'error'),
      [],
    );
  });

  it('logs the status, and counts it', async () => {
    const { client, requests, desk } = await open((call) => {
      call.on('data', (message: Buffer) => {
        if (String(message) === 'fail') call.emit('error', { code: status.DATA_LOSS, details: 'lost' });
        else call.write(message);
      });
      call.on('end', () => call.end());
    });
    await client.unary(add, 'x');
    await client.unary(add, 'fail');
    const open_ = client.chat(add);
    open_.on('error', () => {});
    open_.write(Buffer.from('x'));
    await new Promise((resolve) => open_.once('data', resolve));
    open_.cancel();
    await eventually(() => assert.equal(requests().length, 3));
    assert.deepEqual(
      requests().map(({ path, status: code, grpcStatus }) => [path, code, grpcStatus]),
      [
        [add, 200, 'OK'],
        [add, 200, 'DATA_LOSS'],
        [add, 499, 'CANCELLED'],
      ],
    );
    const series = await scrape(desk);
    const counted = ['OK', 'CANCELLED', 'DATA_LOSS', 'UNAVAILABLE'].map(
      (name) => series[`frontdesk_grpc_calls_total carts ${name}`],
    );
    assert.deepEqual(counted, [1, 1, 1, 0]);
    assert.deepEqual(
      ['2xx', '5xx', '499'].map((code) => series[`frontdesk_requests_total carts ${code}`]),
      [1, 1, 1],
    );
  });

  it('shows failures in the diagnostics, with the method and the status', async () => {
    const { client, desk } = await open(failing(status.INTERNAL, 'secret'), { records: [authRecord] });
    const authorization = `Basic ${Buffer.from('demo:demo').toString('base64')}`;
    await client.unary(add, '', withMetadata({ authorization }));
    await eventually(async () => {
      const { body } = await callAsDemo(desk, '/gateway/v0/diag/').set('Accept', 'application/json');
      assert.deepEqual(
        [body.failures[0]?.path, body.failures[0]?.reason, body.failures[0]?.status],
        [add, 'the service ended the call with the gRPC status INTERNAL', 500],
      );
    });
  });

  it('explains to which method of which service it goes', async () => {
    const { desk } = await open(saying('hi'), { mapping: { timeout_ms: 5000 } });
    const { target } = await desk.explain({ method: 'POST', url: add });
    assert.deepEqual(target?.grpc, { service: 'shop.Carts', method: 'Add' });
    assert.equal(target?.across?.bounds_whole_call, true);
    assert.deepEqual(target?.across?.idle_timeout_ms, { value: 0, from: 'setting' });
  });

  it('says that the mapping lacks grpc: true', async () => {
    const plain = await startUpstream(servers);
    const own = mappingRecord('plain', '/other.Service', plain.origin);
    const { client, log } = await open(saying('hi'), { records: [own] });
    await client.unary('/other.Service/Get');
    await client.unary('/other.Service/Get');
    const hints = log.filter(({ message }) => /set grpc: true/.test(message ?? ''));
    assert.deepEqual(
      hints.map(({ fields }) => fields['mapping']),
      ['plain'],
    );
  });

  it('refuses a mapping to a service of its own process', async () => {
    const own = mappingRecord('own', '/v1/hotels', 'hotel', { grpc: true });
    await assert.rejects(openDesk({ config: { records: [own] } }), /in this process cannot be used as a gRPC service/);
  });

  it('forwards other requests of the mapping over HTTP/2 too', async () => {
    const { gateway } = await open(saying('hi'));
    const response = await fetch(`${gateway.url}${add}`);
    assert.equal(response.status, 415);
  });

  it('ends a stream at its idle_timeout_ms', async () => {
    const { client } = await open((call) => void call.write(Buffer.from('one')), { mapping: { idle_timeout_ms: 200 } });
    const { messages, code } = await readAll(client.download(add));
    assert.deepEqual([messages.length, code], [1, status.DEADLINE_EXCEEDED]);
  });
});
