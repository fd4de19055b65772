/** A trace on its way through a desk: what the services behind it are told, and what the log says. Nobody records it. */
import assert from 'node:assert/strict';
import type { IncomingHttpHeaders } from 'node:http';
import request from 'supertest';
import { authRecord, desksOf, limitRecord, mappingRecord } from '../support/desks.ts';
import { type LogLine, recordingLogger } from '../support/edge.ts';
import { type Served, testServers } from '../support/serve.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';
import { rawRequest, sendRaw } from '../support/wire/raw-client.ts';

const traceId = '0af7651916cd43dd8448eb211c80319c';
const parentId = 'b7ad6b7169203331';
const traceparent = `00-${traceId}-${parentId}-01`;

describe('the trace of a request', () => {
  const servers = testServers();
  const open = desksOf(servers);

  const bare = ({ origin }: Served) => origin.slice('http://'.length);

  /** A service behind an auth service across HTTP, with a shadow; `more` goes into its mapping. */
  async function setUp(more: object = {}, auth?: Served) {
    const upstream = await startUpstream(servers);
    const asked = await startUpstream(servers, (res) => res.setHeader('X-Travel-User', 'ann').end());
    const shadow = await startUpstream(servers);
    const log: LogLine[] = [];
    const desk = await open({
      only: ['gateway'],
      logger: recordingLogger(log),
      config: {
        records: [
          { ...authRecord, auth_service: bare(auth ?? asked) },
          mappingRecord('rooms', '/rooms', bare(upstream), more),
          mappingRecord('copy', '/rooms', bare(shadow), { shadow: true }),
          mappingRecord('closed', '/closed', bare(await servers.refusing()), { bypass_auth: true }),
        ],
      },
    });
    const { gateway } = await desk.listen();
    assert.ok(gateway !== undefined);
    return { upstream, asked, shadow, log, ...gateway };
  }

  /** The id that a service is told as its parent. */
  function told({ headers, names }: { headers: IncomingHttpHeaders; names: readonly string[] }) {
    assert.equal(names.filter((name) => name === 'traceparent').length, 1);
    const [, id, span, flags] = /^00-([\da-f]{32})-([\da-f]{16})-(\d\d)$/.exec(String(headers['traceparent'])) ?? [];
    assert.ok(span !== undefined && span !== parentId, String(headers['traceparent']));
    return { traceId: id, span, flags, tracestate: headers['tracestate'] };
  }

  const arrived = async (upstream: Upstream) => {
    while (upstream.reached.length === 0) await new Promise((resolve) => setImmediate(resolve));
    return told(upstream.only());
  };

  it('goes on to the service, its shadow and the auth service, as a child of ours', async () => {
    const { upstream, asked, shadow, port } = await setUp();
    const lines = [`traceparent: ${traceparent}`, 'tracestate: rojo=1', 'tracestate: congo=2'];
    const answer = await sendRaw(port, rawRequest('GET /rooms', lines));
    assert.match(answer, /^HTTP\/1\.1 200 /);
    assert.doesNotMatch(answer, /^trace/im);
    const seen = told(upstream.only());
    assert.deepEqual({ ...seen, span: '' }, { traceId, span: '', flags: '01', tracestate: 'rojo=1,congo=2' });
    assert.deepEqual(await arrived(shadow), seen);
    assert.deepEqual(told(asked.only()), seen);
    for (const { names } of [upstream.only(), asked.only(), shadow.only()])
      assert.equal(names.filter((name) => name === 'tracestate').length, 1);
  });

  it('begins here when it came with none, and another one with each request', async () => {
    const { upstream, asked, url } = await setUp();
    for (let sent = 0; sent < 3; sent += 1) await request(url).get('/rooms').expect(200);
    const seen = upstream.reached.map(told);
    assert.deepEqual(asked.reached.map(told), seen);
    assert.equal(new Set(seen.map((one) => one.traceId)).size, 3);
    assert.deepEqual(new Set(seen.map(({ flags }) => flags)), new Set(['00']));
  });

  describe('begins anew, without what the client said of it, for', () => {
    function check(what: string, lines: readonly string[]) {
      it(what, async () => {
        const { upstream, port } = await setUp({ bypass_auth: true });
        assert.match(await sendRaw(port, rawRequest('GET /rooms', [...lines, 'tracestate: a=1'])), /^HTTP\/1\.1 200 /);
        const seen = told(upstream.only());
        assert.notEqual(seen.traceId, traceId);
        assert.deepEqual([seen.flags, seen.tracestate], ['00', undefined]);
      });
    }

    check('a traceparent that came twice', [`traceparent: ${traceparent}`, `traceparent: ${traceparent}`]);
    check('capitals', [`traceparent: ${traceparent.toUpperCase()}`]);
    check('a version that cannot be', [`traceparent: ff${traceparent.slice(2)}`]);
    check('an id of zeros', [`traceparent: 00-${'0'.repeat(32)}-${parentId}-01`]);
    check('a tracestate alone', []);
  });

  it('keeps of tracestate what fits, in whole members', async () => {
    const { upstream, port } = await setUp({ bypass_auth: true });
    const members = Array.from({ length: 40 }, (_, index) => `k${index}=v`);
    await sendRaw(port, rawRequest('GET /rooms', [`traceparent: ${traceparent}`, `tracestate: ${members.join(',')}`]));
    assert.equal(told(upstream.only()).tracestate, members.slice(0, 32).join(','));
  });

  it('is left out where the mapping says so', async () => {
    const { upstream, url } = await setUp({ bypass_auth: true, remove_request_headers: ['traceparent', 'tracestate'] });
    await request(url).get('/rooms').set({ traceparent, tracestate: 'a=1' }).expect(200);
    assert.deepEqual(
      upstream.only().names.filter((name) => name.startsWith('trace')),
      [],
    );
  });

  it('is told to an auth service once, though its record lists the header', async () => {
    const upstream = await startUpstream(servers);
    const asked = await startUpstream(servers);
    const record = { ...authRecord, auth_service: bare(asked), allowed_request_headers: ['traceparent', 'tracestate'] };
    const desk = await open({
      only: ['gateway'],
      config: { records: [record, mappingRecord('rooms', '/rooms', bare(upstream))] },
    });
    await request(desk.app.callback()).get('/rooms').set({ traceparent, tracestate: 'a=1' }).expect(200);
    assert.equal(told(asked.only()).tracestate, 'a=1');
  });

  it('does not make an auth service be asked twice about the same', async () => {
    const asked = await startUpstream(servers);
    const upstream = await startUpstream(servers);
    const desk = await open({
      only: ['gateway'],
      config: {
        records: [
          { ...authRecord, auth_service: bare(asked), cache_ms: 60_000 },
          mappingRecord('rooms', '/rooms', bare(upstream)),
        ],
      },
    });
    const { gateway } = await desk.listen();
    for (let sent = 0; sent < 3; sent += 1)
      await request(gateway?.url ?? '')
        .get('/rooms')
        .expect(200);
    assert.equal(upstream.reached.length, 3);
    assert.equal(asked.reached.length, 1);
  });

  describe('is in the log', () => {
    const ids = { requestId: 'one', traceId };
    const sent = { 'X-Request-Id': 'one', traceparent };

    const idsOf = ({ fields }: LogLine) => ({ requestId: fields['requestId'], traceId: fields['traceId'] });

    it('of a request that was answered', async () => {
      const { log, url, upstream } = await setUp({ bypass_auth: true });
      await request(url).get('/rooms').set(sent).expect(200);
      assert.deepEqual(log.filter(({ message }) => message === 'request').map(idsOf), [ids]);
      await request(url).get('/rooms').expect(200);
      assert.equal(log.at(-1)?.fields['traceId'], told(upstream.reached[1] ?? assert.fail()).traceId);
    });

    it('of a service that is down', async () => {
      const { log, url } = await setUp();
      await request(url).get('/closed').set(sent).expect(503);
      const lines = log.filter(({ fields }) => fields['mapping'] === 'closed');
      assert.deepEqual(lines.map(({ level }) => level).sort(), ['info', 'warn']);
      assert.deepEqual(lines.map(idsOf), [ids, ids]);
    });

    it('of an auth service that is down', async () => {
      const { log, url } = await setUp({}, await servers.refusing());
      await request(url).get('/rooms').set(sent).expect(503);
      const lines = log.filter(({ fields }) => fields['requestId'] !== undefined);
      assert.ok(lines.some(({ message }) => message === 'the auth service gave no answer'));
      assert.equal(lines.length, 3);
      for (const line of lines) assert.deepEqual(idsOf(line), ids);
    });

    it('of a rate-limit service that is down', async () => {
      const log: LogLine[] = [];
      const upstream = await startUpstream(servers);
      const labels = { gateway: [{ all: [{ generic_key: { key: 'all', value: 'yes' } }] }] };
      const desk = await open({
        only: ['gateway'],
        logger: recordingLogger(log),
        config: {
          records: [
            mappingRecord('rooms', '/rooms', bare(upstream), { labels }),
            { ...limitRecord, service: bare(await servers.refusing()) },
          ],
        },
      });
      await request(desk.app.callback()).get('/rooms').set(sent).expect(200);
      const line = log.find(({ message }) => message === 'the rate-limit service gave no answer');
      assert.deepEqual(line && idsOf(line), ids);
    });
  });

  it('is explained as what each request gets anew', async () => {
    const upstream = await startUpstream(servers);
    const desk = await open({
      only: ['gateway'],
      config: { records: [mappingRecord('rooms', '/rooms', bare(upstream))] },
    });
    const { target } = desk.explain({ method: 'GET', url: '/rooms', headers: [['traceparent', traceparent]] });
    assert.deepEqual(
      target?.headers.filter(({ name }) => name.startsWith('trace')),
      [{ name: 'traceparent', value: '(made for each request)', by: 'gateway' }],
    );
  });
});
