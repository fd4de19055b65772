/** TLS handshakes that fail: what is logged, and what a client of plain HTTP receives. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { mock } from 'node:test';
import { connect as connectTls } from 'node:tls';
import type { HttpServerOptions } from '#http';
import { testServers } from '../../support/serve.ts';
import { temporaryFiles } from '../../support/temporary-files.ts';
import { closeOf, eventually } from '../../support/waiting.ts';
import { type Certificate, makeCertificate } from '../../support/wire/certificate.ts';
import { startHttp } from '../../support/wire/http-server.ts';
import { bodyOf, sendRaw } from '../../support/wire/raw-client.ts';

describe('a TLS handshake that fails', () => {
  const writeFiles = temporaryFiles();
  const servers = testServers();
  let tls: Certificate | undefined;

  before(async function () {
    tls = await makeCertificate(await writeFiles(), 'IP:127.0.0.1');
    if (tls === undefined) this.skip();
  });

  async function logging(options: Partial<HttpServerOptions> = {}) {
    const lines: (readonly [message: string | undefined, fields: Readonly<Record<string, unknown>>])[] = [];
    const logger = { warn: (fields: object, message?: string) => void lines.push([message, { ...fields }]) };
    const { port } = await startHttp(servers, { tls, logger, ...options });
    return { port, lines };
  }

  for (const line of ['GET / HTTP/1.1', 'POST /a HTTP/1.1', 'HEAD / HTTP/1.0', 'CONNECT a:443 HTTP/1.1'])
    it(`gets a 400 that names https, and is logged, if the client sends plain HTTP: ${line}`, async () => {
      const { port, lines } = await logging();
      const response = await sendRaw(port, `${line}\r\nHost: a\r\nCookie: secret\r\n\r\n`);
      assert.match(response, /^HTTP\/1\.1 400 Bad Request\r\n[\s\S]*\r\nConnection: close\r\n/);
      assert.deepEqual(JSON.parse(bodyOf(response)), {
        code: 400,
        message: '400: Bad Request',
        detail: 'This port requires HTTPS: use https:// instead of http:// in the URL.',
      });
      const [[message, { client, status, reason }] = assert.fail(), ...others] = lines;
      assert.deepEqual([message, client, status, others], ['a TLS handshake failed', '127.0.0.1', 400, []]);
      assert.match(String(reason), /^https? (?:proxy )?request$/);
    });

  it('is logged with the reason if the client has no protocol version in common', async () => {
    const { port, lines } = await logging();
    const old = { maxVersion: 'TLSv1.1', minVersion: 'TLSv1', ciphers: 'DEFAULT@SECLEVEL=0' } as const;
    const socket = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false, ...old });
    await once(socket, 'error');
    const [[message, { client, status, code, reason }] = assert.fail()] = await eventually(() => {
      assert.equal(lines.length, 1);
      return lines;
    });
    assert.deepEqual([message, client, status], ['a TLS handshake failed', '127.0.0.1', undefined]);
    assert.deepEqual([code, reason], ['ERR_SSL_UNSUPPORTED_PROTOCOL', 'unsupported protocol']);
  });

  it('is logged once a second, without what the client sent', async () => {
    const { port, lines } = await logging();
    mock.timers.enable({ apis: ['setTimeout'] });
    try {
      for (let times = 0; times < 5; times += 1) assert.equal(await sendRaw(port, 'PROXY secret\r\n'), '');
      assert.equal(lines.length, 1);
      mock.timers.tick(1000);
      assert.deepEqual(
        lines.map(([, { leftOut }]) => leftOut),
        [undefined, 3],
      );
    } finally {
      mock.timers.reset();
    }
    assert.doesNotMatch(JSON.stringify(lines), /secret/);
  });

  it('is not logged if the client has sent nothing', async () => {
    const { port, lines } = await logging({ headerTimeoutMs: 50 });
    const left = connect(port, '127.0.0.1', () => left.destroy());
    await closeOf(left);
    const silent = connect(port, '127.0.0.1').resume();
    await closeOf(silent);
    assert.deepEqual(lines, []);
  });

  it('is logged if it is not complete in time', async () => {
    // Long enough for the first bytes to arrive on a busy machine.
    const { port, lines } = await logging({ headerTimeoutMs: 1000 });
    const socket = connect(port, '127.0.0.1').on('error', () => {});
    socket.resume().write('\u0016\u0003');
    await closeOf(socket);
    assert.deepEqual(
      lines.map(([message, { code }]) => [message, code]),
      [['a TLS handshake failed', 'ERR_TLS_HANDSHAKE_TIMEOUT']],
    );
  });
});
