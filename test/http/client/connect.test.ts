/** HTTP/2 over TLS: the server must select h2, and its certificate is verified by the configured name. */
import assert from 'node:assert/strict';
import { createSecureServer, type Http2SecureServer, type SecureServerOptions } from 'node:http2';
import { createServer as createHttpsServer } from 'node:https';
import type { Server } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { codeOf, respond, type SessionsSetUp, send, sessionsTo } from '../../support/http2-services.ts';
import { testServers } from '../../support/serve.ts';
import { temporaryFiles } from '../../support/temporary-files.ts';
import { type Certificate, makeCertificate } from '../../support/wire/certificate.ts';

describe('HTTP/2 over TLS', () => {
  const servers = testServers();
  const writeFiles = temporaryFiles();
  let certificate: Certificate | undefined;

  before(async function () {
    certificate = await makeCertificate(await writeFiles(), 'DNS:shop.example,IP:127.0.0.1');
    if (certificate === undefined) this.skip();
  });

  async function serve(server: Http2SecureServer | Server) {
    return `https://127.0.0.1:${(await servers.listen(server as Server)).port}`;
  }

  /** Starts a server that responds with the name in the TLS handshake and the subject of the client's certificate. */
  function serveHttp2(options: SecureServerOptions = {}) {
    const server = createSecureServer({ ...certificate, ...options }).on('stream', (stream) => {
      const socket = stream.session?.socket as TLSSocket;
      respond(stream, `${socket.servername || 'none'} ${socket.getPeerCertificate().subject?.CN ?? 'none'}`);
    });
    return serve(server.on('sessionError', () => {}));
  }

  async function ask(origin: string, setUp: SessionsSetUp): Promise<unknown> {
    const sent = send(sessionsTo(servers, { origin }, setUp), { headers: { host: 'other.example' } });
    return sent.response.then(
      ({ body }) => String(body),
      () => codeOf(sent),
    );
  }

  it('verifies the certificate by the configured name or by the address, whatever the host of the request', async () => {
    const origin = await serveHttp2();
    const tls = { ca: certificate?.cert };
    assert.equal(await ask(origin, { tls, serverName: 'shop.example' }), 'shop.example none');
    assert.equal(await ask(origin, { tls }), 'none none');
    assert.equal(await ask(origin, { tls, serverName: 'car.example' }), 'ERR_TLS_CERT_ALTNAME_INVALID');
    assert.equal(await ask(origin, { serverName: 'shop.example' }), 'DEPTH_ZERO_SELF_SIGNED_CERT');
  });

  it('sends the certificate of the gateway', async () => {
    const origin = await serveHttp2({ requestCert: true, rejectUnauthorized: false });
    const { cert, key } = certificate ?? {};
    assert.equal(await ask(origin, { tls: { ca: cert, cert, key } }), 'none test');
  });

  it('sends nothing to a server that does not select h2', async () => {
    let requests = 0;
    const tls = { ca: certificate?.cert };
    const http1 = createHttpsServer({ ...certificate }, (_req, res) => {
      requests += 1;
      res.end();
    });
    const withoutAlpn = await serve(http1);
    assert.equal(await ask(withoutAlpn, { tls }), 'HTTP2_UNSUPPORTED');
    const silent = createHttpsServer({ ...certificate, ALPNProtocols: [] });
    assert.equal(await ask(await serve(silent), { tls }), 'HTTP2_UNSUPPORTED');
    assert.equal(requests, 0);
  });

  it('fails on a port without TLS', async () => {
    const { port } = await servers.http((_req, res) => void res.end());
    assert.match(String(await ask(`https://127.0.0.1:${port}`, {})), /^ERR_SSL_/);
  });
});
