/** Clients of HTTP/2: without TLS with prior knowledge, and over TLS by ALPN. */
import assert from 'node:assert/strict';
import { createFrontdesk } from 'frontdesk';
import { makeCertificate } from '../support/wire/certificate.ts';
import { hotels } from './booking-client.ts';
import { conformance, openListeners } from './conformance.ts';

conformance(
  'one process, over HTTP/2',
  async (config) => {
    const ports = { port: 0, authPort: 0, ratelimitPort: 0, ratelimitHttpPort: 0 };
    const desk = await createFrontdesk({ config, databaseUrl: 'sqlite::memory:', demo: true, ...ports });
    return { ...(await openListeners(desk)), http2: true };
  },
  { listeners: ['reference', 'compared', 'auth', 'ratelimitHttp'], kinds: [hotels] },
);

conformance(
  'one process, over HTTP/2 with TLS',
  async (config) => {
    const certificate = await makeCertificate(config, 'IP:127.0.0.1');
    assert.ok(certificate, 'openssl is not installed');
    const { file: tlsCert, keyFile: tlsKey, cert: ca } = certificate;
    const desk = await createFrontdesk({
      config,
      databaseUrl: 'sqlite::memory:',
      demo: true,
      port: 0,
      tlsCert,
      tlsKey,
    });
    return { ...(await openListeners(desk)), http2: true, ca };
  },
  { listeners: ['gateway'] },
);
