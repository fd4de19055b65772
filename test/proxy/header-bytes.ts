/** Cases for a proxy: it passes the bytes of header values on as they are, however the rest of the message arrives. */
import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import fc from 'fast-check';
import { type Served, type TestServers, testServers } from '../support/serve.ts';
import { peerOf, speak } from '../support/wire/peer.ts';
import { rawRequest } from '../support/wire/raw-client.ts';

/** The bytes of UTF-8 text, with one character for each byte. */
export const utf8 = (text: string) => Buffer.from(text).toString('latin1');

const bytes = Array.from({ length: 0x80 }, (_, index) => String.fromCharCode(0x80 + index));

/** The code points of the last one end in the bytes CR and LF: cut off to these bytes, they would start another header. */
export const opaqueValues = Object.freeze({
  'every byte above ASCII': bytes.join('.'),
  'UTF-8 text': utf8('Jörg 文件 účet.pdf 😀'),
  'UTF-8 text that contains CR and LF as low bytes': utf8(
    'a\u010d\u010aSet-Cookie: b=c\u010d\u010a\u010d\u010aHTTP/1.1 200 OK',
  ),
});

/** Any value that starts and ends with a letter, because parsers trim blanks. */
export const anyValue = fc
  .array(fc.oneof(fc.constantFrom(...bytes), fc.string({ unit: 'grapheme', maxLength: 3 }).map(utf8)), {
    maxLength: 40,
  })
  .map((parts) => `a${parts.join('').replace(/[^\t\x20-\x7e\x80-\xff]/g, '')}z`);

/** A header line for each name that some server or proxy treats in its own way, and for one that none knows. */
export function opaqueLines(value: string): string[] {
  return [
    `Content-Disposition: attachment; filename="${value}"`,
    `Location: /${value}`,
    `Set-Cookie: a=${value}`,
    `X-Name: ${value}`,
  ];
}

/** The lines with the names of `opaqueLines`, sorted by name, with the names as `opaqueLines` spells them. */
export function opaqueLinesIn(response: string): string[] {
  const [head = ''] = response.split('\r\n\r\n', 1);
  const names = opaqueLines('').map((line) => line.slice(0, line.indexOf(':')));
  return names.flatMap((name) => {
    const start = `${name.toLowerCase()}:`;
    const lines = head.split('\r\n').filter((line) => line.toLowerCase().startsWith(start));
    return lines.map((line) => name + line.slice(name.length));
  });
}

/** Calls `respond` for each request without a body, with the head of the request. */
export function startWireService(
  servers: TestServers,
  respond: (socket: Socket, head: string) => void,
): Promise<Served> {
  return servers.tcp((socket) => {
    const { received } = peerOf(socket);
    let read = 0;
    socket.on('data', () => {
      for (let end = headEnd(received(), read); end !== -1; end = headEnd(received(), read)) {
        const head = received().slice(read, end);
        read = end;
        respond(socket, head);
      }
    });
  });
}

function headEnd(text: string, start: number): number {
  const blank = text.indexOf('\r\n\r\n', start);
  return blank === -1 ? -1 : blank + 4;
}

interface Response {
  readonly what: string;
  readonly method?: string;
  readonly status?: string;
  readonly framing?: readonly string[];
  /** Sent in one packet with the head. */
  readonly body?: string;
  /** Sent when the client has received the head. */
  readonly rest?: string;
  /** Puts the framing before the other headers. */
  readonly framingFirst?: boolean;
}

const large = 'x'.repeat(400_000);

const responses: readonly Response[] = [
  { what: 'with a short body', framing: ['Content-Length: 2'], body: 'ok' },
  { what: 'with a short body and its length first', framing: ['Content-Length: 2'], body: 'ok', framingFirst: true },
  { what: 'with a short chunked body', framing: ['Transfer-Encoding: chunked'], body: '2\r\nok\r\n0\r\n\r\n' },
  { what: 'with a late body', framing: ['Content-Length: 70000'], rest: 'x'.repeat(70_000) },
  {
    what: 'with a late body and its length first',
    framing: ['Content-Length: 70000'],
    rest: 'x'.repeat(70_000),
    framingFirst: true,
  },
  { what: 'with a late chunked body', framing: ['Transfer-Encoding: chunked'], rest: '2\r\nok\r\n0\r\n\r\n' },
  { what: 'with a large body', framing: ['Content-Length: 400000'], body: large },
  { what: 'with an empty body', framing: ['Content-Length: 0'] },
  {
    what: 'that is an event stream',
    framing: ['Content-Type: text/event-stream', 'Transfer-Encoding: chunked'],
    rest: '9\r\ndata: x\n\n\r\n0\r\n\r\n',
  },
  { what: 'to a HEAD', method: 'HEAD', framing: ['Content-Length: 2'] },
  { what: 'with status 204', status: '204 No Content' },
  { what: 'with status 304', status: '304 Not Modified' },
  { what: 'with status 302', status: '302 Found', framing: ['Content-Length: 2'], body: 'go' },
  { what: 'with status 404', status: '404 Not Found', framing: ['Content-Length: 2'], body: 'no' },
];

interface Sent {
  bytes: string;
  socket: Socket | undefined;
}

/** Returns what arrives as text of HTTP/1.1. Calls `onHead` when the head has arrived. */
export type SendLines = (
  port: number,
  method: string,
  lines: readonly string[],
  onHead?: () => void,
) => Promise<string>;

const sendOverHttp1: SendLines = async (port, method, lines, onHead = () => {}) => {
  const client = speak(port, rawRequest(`${method} /`, lines));
  await client.until('\r\n\r\n');
  onHead();
  return client.closed;
};

/** `start` starts the proxy in front of a service, for all paths. */
export function headerBytesCases(
  start: (service: Served, servers: TestServers) => Promise<Served>,
  send: SendLines = sendOverHttp1,
): void {
  const servers = testServers(after);
  const sent: Sent = { bytes: '', socket: undefined };
  const heads: string[] = [];
  let port: number;

  before(async () => {
    const service = await startWireService(servers, (socket, head) => {
      heads.push(head);
      sent.socket = socket;
      socket.write(sent.bytes, 'latin1');
    });
    port = (await start(service, servers)).port;
  });

  async function check({ method = 'GET', status = '200 OK', ...response }: Response, value: string): Promise<void> {
    const { framing = [], body = '', rest = '', framingFirst = false } = response;
    const headers = framingFirst ? [...framing, ...opaqueLines(value)] : [...opaqueLines(value), ...framing];
    sent.bytes = [`HTTP/1.1 ${status}`, ...headers, '', body].join('\r\n');
    const received = await send(port, method, [], () => {
      if (rest !== '') sent.socket?.write(rest, 'latin1');
    });
    assert.deepEqual(opaqueLinesIn(received), opaqueLines(value));
    assert.equal(received.match(/(?:^|\r\n)HTTP\/1\.1 /g)?.length, 1);
  }

  for (const response of responses)
    it(`passes the bytes of header values on in a response ${response.what}`, async () => {
      for (const value of Object.values(opaqueValues)) await check(response, value);
    });

  it('passes any value on in any response', async () => {
    await fc.assert(fc.asyncProperty(fc.constantFrom(...responses), anyValue, check), { numRuns: 60 });
  });

  it('passes the bytes of header values on in a request', async () => {
    sent.bytes = 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n';
    for (const value of Object.values(opaqueValues)) {
      const lines = [`Content-Disposition: ${value}`, `Cookie: a=${value}`, `Referer: /${value}`, `X-Name: ${value}`];
      await send(port, 'GET', lines);
      const head = heads.at(-1)?.toLowerCase().split('\r\n') ?? [];
      const missing = lines.filter((line) => !head.includes(line.toLowerCase()));
      assert.deepEqual(missing, []);
    }
  });
}
