/** The rate-limit service alone, for whoever has a proxy already: no records, no database, and a client of bytes. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { type ClientHttp2Session, connect, type IncomingHttpHeaders } from 'node:http2';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Server, startServer } from '../support/programs/frontdesk-process.ts';
import { conformance } from './conformance.ts';

describe('the rate-limit service alone', () => {
  let desk: Awaited<ReturnType<typeof openAlone>>;

  before(async function () {
    this.timeout(30_000);
    desk = await openAlone();
  });

  after(() => desk.close());

  conformance('the rate-limit service alone', async () => ({ ...desk, close: async () => {} }), [
    'ratelimit',
    'ratelimitHttp',
  ]);

  rawCases(() => desk.ratelimitUrl);
});

function rawCases(ratelimitUrl: () => string): void {
  describe('by a client of raw HTTP/2', () => {
    let session: ClientHttp2Session;

    before(() => {
      session = connect(ratelimitUrl().replace('grpc:', 'http:'));
    });

    after(() => session.destroy());

    for (const service of ['envoy.service.ratelimit.v3.RateLimitService', 'pb.lyft.ratelimit.RateLimitService']) {
      const call = (...parts: Buffer[]) => callRaw(session, `/${service}/ShouldRateLimit`, ...parts);
      const request = asked('gateway', 'x-gateway-test-allow', service);

      describe(service, () => {
        it('answers one frame, with status 0 in the trailers', async () => {
          const { headers, body, trailers } = await call(frame(asked('gateway')));
          assert.deepEqual([headers[':status'], headers['content-type']], [200, 'application/grpc+proto']);
          // Not compressed, two bytes long: field 1 is the overall code, OK.
          assert.equal(body.toString('hex'), '00' + '00000002' + '0801');
          assert.equal(trailers['grpc-status'], '0');
        });

        it('takes a frame that comes in pieces', async () => {
          const bytes = frame(asked('gateway'));
          const { body } = await call(bytes.subarray(0, 3), bytes.subarray(3, 8), bytes.subarray(8));
          assert.equal(body.toString('hex'), '00000000020801');
        });

        it('answers OVER_LIMIT once the ten of a minute are used up', async () => {
          const codes: (number | undefined)[] = [];
          // The minute may turn once on the way.
          for (let sent = 0; sent < 21; sent += 1) codes.push((await call(frame(request))).body[6]);
          assert.deepEqual(codes.slice(0, 10), Array(10).fill(1));
          assert.ok(codes.includes(2));
        });

        it('answers without a body, and with a status that is not 0, to an empty domain and to bytes that are no message', async () => {
          for (const [message, status] of [
            [Buffer.alloc(0), '3'],
            [Buffer.from('0aff', 'hex'), '13'],
          ] as const) {
            const { headers, body, trailers } = await call(frame(message));
            assert.equal(body.length, 0);
            assert.equal(trailers['grpc-status'] ?? headers['grpc-status'], status);
          }
        });
      });
    }

    it('answers UNIMPLEMENTED to what it does not have', async () => {
      const { headers, trailers } = await callRaw(
        session,
        '/envoy.service.ratelimit.v3.RateLimitService/Other',
        frame(Buffer.alloc(0)),
      );
      assert.equal(trailers['grpc-status'] ?? headers['grpc-status'], '12');
    });
  });
}

/** With the limits of ./config and nothing else of it; the database that the settings name does not exist. */
async function openAlone() {
  const directory = await mkdtemp(join(tmpdir(), 'frontdesk-'));
  await cp('config/ratelimit', join(directory, 'ratelimit'), { recursive: true });
  const env = { CONFIG_DIR: directory, DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none' };
  const { stop, ...addresses }: Server = await startServer(['--only', 'ratelimit'], { env });
  return {
    ...addresses,
    async close() {
      await stop();
      await rm(directory, { recursive: true });
    },
  };
}

interface RawAnswer {
  readonly headers: IncomingHttpHeaders & { readonly ':status'?: number };
  readonly body: Buffer;
  /** Empty when the headers were all. */
  readonly trailers: IncomingHttpHeaders;
}

async function callRaw(session: ClientHttp2Session, path: string, ...parts: readonly Buffer[]): Promise<RawAnswer> {
  const headers = { ':method': 'POST', ':path': path, 'content-type': 'application/grpc', te: 'trailers' };
  const stream = session.request(headers);
  let trailers: IncomingHttpHeaders = {};
  stream.once('trailers', (received) => {
    trailers = received;
  });
  const answered = once(stream, 'response');
  for (const part of parts) stream.write(part);
  stream.end();
  const [received] = await answered;
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return { headers: received, body: Buffer.concat(chunks), trailers };
}

/** Length-prefixed message (gRPC over HTTP/2): a byte for compression, four for the length. */
function frame(message: Buffer): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

/** RateLimitRequest by its field numbers: domain 1, descriptors 2, entries 1, key 1, value 2. */
function asked(domain: string, key?: string, value = ''): Buffer {
  const entry =
    key === undefined ? undefined : Buffer.concat([field(1, Buffer.from(key)), field(2, Buffer.from(value))]);
  const descriptors = entry === undefined ? [] : [field(2, field(1, entry))];
  return Buffer.concat([field(1, Buffer.from(domain)), ...descriptors]);
}

/** Length-delimited, and short enough for one byte of length. */
function field(number: number, content: Buffer): Buffer {
  assert.ok(content.length < 128);
  return Buffer.concat([Buffer.from([(number << 3) | 2, content.length]), content]);
}
