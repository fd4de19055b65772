/** Traces without OpenTelemetry: the trace context that services receive, and the trace ids in the log. */
import assert from 'node:assert/strict';
import type { IncomingHttpHeaders } from 'node:http';
import request from 'supertest';
import type { AuthServiceInput, MappingInput, RecordInput } from '#config';
import { authRecord, desksOf, limitRecord, mappingRecord } from '../support/desks.ts';
import { type LogLine, recordingLogger } from '../support/edge.ts';
import { type Served, testServers } from '../support/serve.ts';
import { startUpstream } from '../support/upstream.ts';
import { eventually } from '../support/waiting.ts';
import { rawRequest, sendRaw, statusOf } from '../support/wire/raw-client.ts';

const traceId = '0af7651916cd43dd8448eb211c80319c';
const parentId = 'b7ad6b7169203331';
const traceparent = `00-${traceId}-${parentId}-01`;

describe('the trace of a request', () => {
  const servers = testServers();
  const open = desksOf(servers);

  const bare = ({ origin }: Served) => origin.slice('http://'.length);

  interface Setup {
    /** Additional fields of the mapping and of the AuthService. */
    readonly mapping?: Partial<MappingInput>;
    readonly auth?: Partial<AuthServiceInput>;
    readonly records?: readonly RecordInput[];
  }

  /** Starts a gateway with a service, its shadow and a remote auth service. */
  async function setUp({ mapping = {}, auth = {}, records = [] }: Setup = {}) {
    const upstream = await startUpstream(servers);
    const asked = await startUpstream(servers, (res) => res.setHeader('X-Travel-User', 'ann').end());
    const shadow = await startUpstream(servers);
    const log: LogLine[] = [];
    const desk = await open({
      only: ['gateway'],
      logger: recordingLogger(log),
      config: {
        records: [
          { ...authRecord, auth_service: bare(asked), ...auth },
          mappingRecord('rooms', '/rooms', bare(upstream), mapping),
          mappingRecord('copy', '/rooms', bare(shadow), { shadow: true }),
          mappingRecord('closed', '/closed', bare(await servers.refusing()), { bypass_auth: true }),
          ...records,
        ],
      },
    });
    const { gateway } = await desk.listen();
    assert.ok(gateway !== undefined);
    return { upstream, asked, shadow, log, desk, ...gateway };
  }

  /** Parses the only traceparent that a service received, which must name a span of the gateway. */
  function traceOf({ headers, names }: { headers: IncomingHttpHeaders; names: readonly string[] }) {
    assert.equal(names.filter((name) => name === 'traceparent').length, 1);
    const [, id, span, flags] = /^00-([\da-f]{32})-([\da-f]{16})-(\d\d)$/.exec(String(headers['traceparent'])) ?? [];
    assert.ok(span !== undefined && span !== parentId, String(headers['traceparent']));
    return { traceId: id, span, flags, tracestate: headers['tracestate'] };
  }

  it('continues in the service, its shadow and the auth service, with the gateway as parent', async () => {
    // The auth service receives the header only once, although its record also lists it.
    const auth = { allowed_request_headers: ['traceparent', 'tracestate'] };
    const { upstream, asked, shadow, port } = await setUp({ auth });
    const lines = [`traceparent: ${traceparent}`, 'tracestate: rojo=1', 'tracestate: congo=2'];
    const answer = await sendRaw(port, rawRequest('GET /rooms', lines));
    assert.equal(statusOf(answer), 200);
    assert.doesNotMatch(answer, /^trace/im);
    const seen = traceOf(upstream.only());
    assert.deepEqual({ ...seen, span: '' }, { traceId, span: '', flags: '01', tracestate: 'rojo=1,congo=2' });
    for (const reached of [upstream.only(), asked.only(), await eventually(shadow.only)]) {
      assert.deepEqual(traceOf(reached), seen);
      assert.equal(reached.names.filter((name) => name === 'tracestate').length, 1);
    }
  });

  it('starts in the gateway if the request has none, with a new id for each request', async () => {
    const { upstream, asked, url } = await setUp();
    for (let sent = 0; sent < 3; sent += 1) await request(url).get('/rooms').expect(200);
    const seen = upstream.reached.map(traceOf);
    assert.deepEqual(asked.reached.map(traceOf), seen);
    assert.equal(new Set(seen.map((one) => one.traceId)).size, 3);
    for (const { flags } of seen) assert.equal(flags, '00');
  });

  for (const [what, lines] of [
    ['a traceparent that came twice', [`traceparent: ${traceparent}`, `traceparent: ${traceparent}`]],
    ['capitals', [`traceparent: ${traceparent.toUpperCase()}`]],
    ['a tracestate alone', []],
  ] as const) {
    it(`starts in the gateway, without the client's tracestate, for ${what}`, async () => {
      const { upstream, port } = await setUp({ mapping: { bypass_auth: true } });
      await sendRaw(port, rawRequest('GET /rooms', [...lines, 'tracestate: a=1']));
      const seen = traceOf(upstream.only());
      assert.notEqual(seen.traceId, traceId);
      assert.deepEqual([seen.flags, seen.tracestate], ['00', undefined]);
    });
  }

  it('is not sent to the service if the mapping removes the headers', async () => {
    const { upstream, url } = await setUp({ mapping: { remove_request_headers: ['traceparent', 'tracestate'] } });
    await request(url).get('/rooms').set({ traceparent, tracestate: 'a=1' }).expect(200);
    assert.doesNotMatch(upstream.only().names.join(), /trace/);
  });

  it('is not part of the cache key for decisions of the auth service', async () => {
    const { asked, upstream, url } = await setUp({ auth: { cache_ms: 60_000 } });
    for (let sent = 0; sent < 3; sent += 1) await request(url).get('/rooms').expect(200);
    assert.deepEqual([upstream.reached.length, asked.reached.length], [3, 1]);
  });

  describe('is in the log', () => {
    const labels = { gateway: [{ all: [{ generic_key: { key: 'all', value: 'yes' } }] }] };

    /** The service that refuses connections, the request, and the log lines about it. */
    const failures = [
      ['a service', () => ({}), '/closed', 503, /^info request,warn /],
      [
        'an auth service',
        (away: string) => ({ auth: { auth_service: away } }),
        '/rooms',
        503,
        /auth service returned no decision/,
      ],
      [
        'a rate-limit service',
        (away: string) => ({ mapping: { labels }, records: [{ ...limitRecord, service: away }] }),
        '/rooms',
        200,
        /rate-limit service returned no decision/,
      ],
    ] as const;

    for (const [what, setupOf, path, status, expected] of failures) {
      it(`in each line for ${what} that is down`, async () => {
        const { log, url } = await setUp(setupOf(bare(await servers.refusing())));
        await request(url).get(path).set({ 'X-Request-Id': 'one', traceparent }).expect(status);
        const lines = log.filter(({ fields }) => fields['requestId'] !== undefined);
        for (const { fields } of lines) assert.deepEqual([fields['requestId'], fields['traceId']], ['one', traceId]);
        assert.match(
          lines
            .map(({ level, message }) => `${level} ${message}`)
            .sort()
            .join(),
          expected,
        );
        assert.ok(lines.length > 1);
      });
    }

    it('even if it started in the gateway', async () => {
      const { log, url, upstream } = await setUp({ mapping: { bypass_auth: true } });
      await request(url).get('/rooms').expect(200);
      assert.equal(log.at(-1)?.fields['traceId'], traceOf(upstream.only()).traceId);
    });
  });

  it('is explained as a header that is generated for each request', async () => {
    const { desk } = await setUp({ mapping: { bypass_auth: true } });
    const { target } = await desk.explain({ method: 'GET', url: '/rooms', headers: [['traceparent', traceparent]] });
    assert.deepEqual(
      target?.headers.filter(({ name }) => name.startsWith('trace')),
      [{ name: 'traceparent', value: '(generated for each request)', by: 'gateway' }],
    );
  });
});
