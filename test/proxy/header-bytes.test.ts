/** The bytes of header values (RFC 9110 section 5.5) reach the other side as they were, whoever sends them, and how. */
import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Readable } from 'node:stream';
import Koa, { type Context } from 'koa';
import type { AuthDecision } from '#auth';
import type { AuthService } from '#config';
import { createUpgrades, isolate } from '#http';
import { authRecordOf, type EdgeOptions, remote, startEdge } from '../support/edge.ts';
import { testServers } from '../support/serve.ts';
import { startHttp } from '../support/wire/http-server.ts';
import { openHttp2 } from '../support/wire/http2-client.ts';
import { speak, upgradeRequest } from '../support/wire/peer.ts';
import { rawRequest, sendRaw } from '../support/wire/raw-client.ts';
import {
  headerBytesCases,
  opaqueLines,
  opaqueLinesIn,
  opaqueValues,
  type SendLines,
  startWireService,
} from './header-bytes.ts';

const servers = testServers();
const mapping = { prefix: '/', allowUpgrade: ['websocket'] };
const values = Object.values(opaqueValues);

/** The headers of `opaqueLines`, as Node has them. */
const opaqueHeaders = (value: string) => Object.fromEntries(opaqueLines(value).map((line) => line.split(/: (.*)/s, 2)));

const sendOverHttp2: SendLines = async (port, method, lines, onHead = () => {}) => {
  const client = openHttp2(`http://127.0.0.1:${port}`);
  const headers = Object.fromEntries(lines.map((line) => line.split(/: (.*)/s, 2)));
  const { stream, status, response } = client.start({ ':method': method, ...headers });
  stream.end();
  const head = [`HTTP/1.1 ${await status}`];
  onHead();
  const { rawHeaders, body } = await response;
  client.session.destroy();
  for (let index = 0; index < rawHeaders.length; index += 2)
    head.push(`${rawHeaders[index]}: ${rawHeaders[index + 1]}`);
  return [...head, '', body].join('\r\n');
};

const silent = isolate(async (ctx) => {
  ctx.status = 204;
});

/** On frontdesk's own server. */
async function startGateway(options: EdgeOptions, owner = servers): Promise<number> {
  const { listener } = await startEdge(owner, { mapping, services: { hotel: silent }, ...options });
  const upgrades = createUpgrades((protocol) => protocol === 'websocket');
  const { port } = await startHttp(owner, { handler: listener, upgrades });
  owner.later(() => upgrades.close(0));
  return port;
}

/** Responds with these bytes to every request. */
const startResponding = (response: string) =>
  startWireService(servers, (socket) => void socket.write(response, 'latin1'));

describe('the gateway on a server of its own', () => {
  headerBytesCases(async (upstream, suite) => {
    const port = await startGateway({ upstream }, suite);
    return { port, origin: `http://127.0.0.1:${port}` };
  });

  describe('over HTTP/2', () => {
    headerBytesCases(async (upstream, suite) => {
      const { listener } = await startEdge(suite, { mapping, upstream });
      const { port } = await startHttp(suite, { handler: listener, http2: true });
      return { port, origin: `http://127.0.0.1:${port}` };
    }, sendOverHttp2);
  });

  it('passes the bytes of header values on in the response to an upgrade', async () => {
    for (const value of values) {
      const head = ['HTTP/1.1 101 Switching Protocols', 'Connection: Upgrade', 'Upgrade: websocket'];
      const port = await startGateway({
        upstream: await startResponding([...head, ...opaqueLines(value), '', 'hello'].join('\r\n')),
      });
      const client = speak(port, upgradeRequest('/'));
      await client.until('hello');
      client.socket.destroy();
      assert.deepEqual(opaqueLinesIn(client.received()), opaqueLines(value));
    }
  });

  it('passes the bytes of header values on when a service refuses an upgrade', async () => {
    for (const value of values) {
      const head = ['HTTP/1.1 403 Forbidden', ...opaqueLines(value), 'Content-Length: 2'];
      const port = await startGateway({ upstream: await startResponding([...head, '', 'no'].join('\r\n')) });
      assert.deepEqual(opaqueLinesIn(await sendRaw(port, upgradeRequest('/'))), opaqueLines(value));
    }
  });

  it('passes the bytes of header values on in early hints and in the response after them', async () => {
    for (const value of values) {
      const link = `Link: </${value}>; rel=preload`;
      const hints = ['HTTP/1.1 103 Early Hints', link, '', ''];
      const head = ['HTTP/1.1 200 OK', link, ...opaqueLines(value), 'Content-Length: 2'];
      const port = await startGateway({ upstream: await startResponding([...hints, ...head, '', 'ok'].join('\r\n')) });
      const [sent = '', response = ''] = (await sendRaw(port, rawRequest('GET /'))).split(/(?<=\r\n\r\n)(?=HTTP)/);
      assert.equal(sent, hints.join('\r\n'));
      assert.ok(response.includes(`\r\n${link}\r\n`));
      assert.deepEqual(opaqueLinesIn(response), opaqueLines(value));
    }
  });

  it('passes the bytes of header values on in a response that waits for an earlier one', async () => {
    for (const value of values) {
      const waiting: Socket[] = [];
      const upstream = await startWireService(servers, (socket, head) => {
        if (head.startsWith('GET /first')) waiting.push(socket);
        else {
          socket.write(
            [`HTTP/1.1 200 OK`, ...opaqueLines(value), 'Content-Length: 2', '', 'ok'].join('\r\n'),
            'latin1',
          );
          for (const earlier of waiting) earlier.write('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirst');
        }
      });
      const port = await startGateway({ upstream });
      const received = await sendRaw(port, `GET /first HTTP/1.1\r\nHost: a\r\n\r\n${rawRequest('GET /second')}`);
      const [, second = ''] = received.split(/(?<=first)(?=HTTP)/);
      assert.deepEqual(opaqueLinesIn(second), opaqueLines(value));
    }
  });

  it('changes only the paths that the client sees differently', async () => {
    for (const value of values.map((one) => one.replace(/[ ;]/g, ''))) {
      const lines = (prefix: string) => [
        `Location: ${prefix}/${value}?${value}`,
        `Set-Cookie: ${value}=${value}; Path=${prefix}/${value}`,
      ];
      const head = ['HTTP/1.1 302 Found', ...lines(''), 'Content-Length: 2'];
      const upstream = await startResponding([...head, '', 'go'].join('\r\n'));
      const port = await startGateway({ upstream, mapping: { prefix: '/travel' } });
      assert.deepEqual(opaqueLinesIn(await sendRaw(port, rawRequest('GET /travel/'))), lines('/travel'));
    }
  });

  it('passes the bytes of trailers on', async () => {
    for (const value of values) {
      const head = ['HTTP/1.1 200 OK', 'Trailer: X-Name, Content-Disposition', 'Transfer-Encoding: chunked'];
      const trailers = [`Content-Disposition: ${value}`, `X-Name: ${value}`];
      const bytes = [...head, '', '2', 'ok', '0', ...trailers, '', ''].join('\r\n');
      const port = await startGateway({ upstream: await startResponding(bytes) });
      const response = await sendRaw(port, rawRequest('GET /'));
      assert.ok(response.endsWith(['', '2', 'ok', '0', ...trailers, '', ''].join('\r\n')));
    }
  });

  it('sends configured header values as UTF-8', async () => {
    const rules = {
      add: [{ name: 'x-name', value: 'Jörg 文件 čĊ', append: false }],
      remove: [],
    };
    const heads: string[] = [];
    const upstream = await startWireService(servers, (socket, head) => {
      heads.push(head);
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
    });
    const port = await startGateway({
      upstream,
      mapping: { ...mapping, requestHeaders: rules, responseHeaders: rules },
    });
    const expected = `x-name: ${Buffer.from('Jörg 文件 čĊ').toString('latin1')}\r\n`;
    assert.ok((await sendRaw(port, rawRequest('GET /'))).includes(expected));
    assert.ok(heads[0]?.includes(expected));
  });
});

describe('the gateway as the only middleware of a host app', () => {
  headerBytesCases(async (upstream, suite) => {
    const { gateway } = await startEdge(suite, { upstream, mapping });
    return suite.http(new Koa().use(gateway.middleware).callback());
  });
});

describe('a service in this process', () => {
  type Headers = Record<string, string>;

  /** Responds without Koa. */
  const alone = (send: (res: ServerResponse, headers: Headers) => unknown) => (ctx: Context, headers: Headers) => {
    ctx.respond = false;
    send(ctx.res, headers);
  };

  const senders: Readonly<Record<string, (ctx: Context, headers: Headers) => void>> = {
    'a string': (ctx, headers) => {
      ctx.set(headers);
      ctx.body = 'ok';
    },
    'a Buffer': (ctx, headers) => {
      ctx.set(headers);
      ctx.body = Buffer.from('ok');
    },
    'an object': (ctx, headers) => {
      ctx.set(headers);
      ctx.body = { ok: true };
    },
    'a stream': (ctx, headers) => {
      ctx.set(headers);
      ctx.body = Readable.from(['ok', 'ok']);
    },
    'no body': (ctx, headers) => {
      ctx.set(headers);
      ctx.status = 204;
    },
    'headers before a string': alone((res, headers) => res.writeHead(200, headers).end('ok')),
    'a length and headers before a string': alone((res, headers) =>
      res.writeHead(200, { 'Content-Length': '2', ...headers }).end('ok'),
    ),
    'headers in a list': alone((res, headers) =>
      res.writeHead(200, 'OK', ['Content-Length', '2', ...Object.entries(headers).flat()]).end('ok'),
    ),
    'a list for each header': alone((res, headers) => {
      for (const [name, value] of Object.entries(headers)) res.setHeader(name, [value]);
      res.end('ok');
    }),
    'headers before any body': alone((res, headers) => {
      res.writeHead(200, headers).flushHeaders();
      res.end('ok');
    }),
    'a string in another encoding': alone((res, headers) => res.writeHead(200, headers).end('b2s=', 'base64')),
    'strings one by one': alone((res, headers) => {
      res.writeHead(200, headers).write('');
      res.write('o', 'latin1');
      res.end('k');
    }),
  };

  /** What they send, unless it is `ok`. */
  const contents: Readonly<Record<string, string>> = { 'an object': '{"ok":true}', 'a stream': 'okok' };

  for (const [what, send] of Object.entries(senders))
    for (const method of ['GET', 'HEAD'])
      it(`may send any bytes as header values with ${what} to a ${method}`, async () => {
        for (const value of values) {
          const hotel = isolate(async (ctx) => send(ctx, opaqueHeaders(value)));
          const port = await startGateway({ services: { hotel } });
          const response = await sendRaw(port, rawRequest(`${method} /`));
          assert.deepEqual(opaqueLinesIn(response), opaqueLines(value));
          const hasBody = method === 'GET' && what !== 'no body';
          assert.equal(contentOf(response), hasBody ? (contents[what] ?? 'ok') : '');
        }
      });
});

/** The body without its chunks, which Node may cut as it likes. */
function contentOf(response: string): string {
  const start = response.indexOf('\r\n\r\n') + 4;
  const body = response.slice(start);
  if (body === '' || !/\r\ntransfer-encoding: chunked\r\n/i.test(response.slice(0, start))) return body;
  assert.match(body, /^(?:[\da-f]+\r\n[^\r]+\r\n)*0\r\n\r\n$/);
  return body.replace(/[\da-f]+\r\n([^\r]*)\r\n/g, '$1');
}

describe('an auth service', () => {
  const names = ['content-disposition', 'x-name'];
  const record: Partial<AuthService> = { allowedAuthorizationHeaders: names, allowedRequestHeaders: names };

  for (const [what, body] of [
    ['with a body', 'no'],
    ['without a body', ''],
  ] as const)
    for (const request of [rawRequest('GET /'), upgradeRequest('/')])
      it(`over HTTP sends the client any bytes in a denial ${what} of ${/Upgrade/.test(request) ? 'an upgrade' : 'a request'}`, async () => {
        for (const value of values) {
          const head = ['HTTP/1.1 401 Unauthorized', ...opaqueLines(value), `Content-Length: ${body.length}`];
          const auth = await startResponding([...head, '', body].join('\r\n'));
          const authService = authRecordOf(record);
          const port = await startGateway({ authService, targets: { auth: remote(auth) } });
          assert.deepEqual(opaqueLinesIn(await sendRaw(port, request)), opaqueLines(value));
        }
      });

  it('over HTTP gets the bytes of the client, and sets those of the identity', async () => {
    for (const value of values) {
      const heads: string[] = [];
      const auth = await startWireService(servers, (socket, head) => {
        heads.push(head);
        socket.write(`HTTP/1.1 200 OK\r\nX-Name: ${value}\r\nContent-Length: 0\r\n\r\n`, 'latin1');
      });
      const upstream = await startWireService(servers, (socket, head) => {
        heads.push(head);
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
      });
      const targets = { auth: remote(auth), hotel: remote(upstream) };
      const authService = authRecordOf({ ...record, allowedAuthorizationHeaders: ['x-name'] });
      const port = await startGateway({ authService, targets });
      await sendRaw(port, rawRequest('GET /', [`Content-Disposition: ${value}`, `Cookie: ${value}`]));
      const [asked = '', forwarded = ''] = heads;
      for (const line of [`content-disposition: ${value}`, `cookie: ${value}`]) assert.ok(asked.includes(line), line);
      assert.ok(forwarded.includes(`x-name: ${value}`));
    }
  });

  it('over HTTP gets configured values as UTF-8', async () => {
    const heads: string[] = [];
    const auth = await startWireService(servers, (socket, head) => {
      heads.push(head);
      socket.write('HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n');
    });
    const authService = authRecordOf({ addAuthHeaders: [{ name: 'x-name', value: 'Jörg 文件' }] });
    await sendRaw(await startGateway({ authService, targets: { auth: remote(auth) } }), rawRequest('GET /'));
    assert.ok(heads[0]?.includes(`x-name: ${Buffer.from('Jörg 文件').toString('latin1')}\r\n`));
  });

  for (const body of [undefined, Buffer.from('no')])
    it(`in this process sends the client any bytes in a denial ${body ? 'with' : 'without'} a body`, async () => {
      for (const value of values) {
        const denial: AuthDecision = {
          outcome: 'deny',
          status: 401,
          headers: opaqueHeaders(value),
          ...(body && { body }),
        };
        const port = await startGateway({ authService: authRecordOf(record), authPort: () => denial });
        assert.deepEqual(opaqueLinesIn(await sendRaw(port, rawRequest('GET /'))), opaqueLines(value));
      }
    });
});
