/** Mappings that come from routes of the Gateway API, as the gateway handles their requests. */
import assert from 'node:assert/strict';
import { Agent, request } from 'node:https';
import type { Context } from 'koa';
import type { GatewayRoute, Mapping } from '#config';
import { explainOf, gatewayOf, gatewayRouteOf, mappingOf, startEdge } from '../support/edge.ts';
import { testServers } from '../support/serve.ts';
import { temporaryFiles } from '../support/temporary-files.ts';
import { type Certificate, makeCertificate } from '../support/wire/certificate.ts';
import { startHttp } from '../support/wire/http-server.ts';
import { openHttp2 } from '../support/wire/http2-client.ts';

const servers = testServers();

function routed(fields: Partial<Mapping> = {}, gatewayRoute: Partial<GatewayRoute> = {}): Mapping {
  return mappingOf({ prefix: '/', rewrite: '', ...fields, gatewayRoute: gatewayRouteOf(gatewayRoute) });
}

describe('a Mapping for the requests of one listener', () => {
  const writeFiles = temporaryFiles();
  let tls: Certificate | undefined;

  before(async function () {
    tls = await makeCertificate(await writeFiles(), 'IP:127.0.0.1');
    if (tls === undefined) this.skip();
  });

  const mappings = (['http', 'https'] as const).map((scheme) =>
    routed({ name: scheme, service: scheme, bypassAuth: true }, { scheme, place: scheme }),
  );
  const services = Object.fromEntries(
    mappings.map(({ name }) => [name, async ({ response }: Context) => void Object.assign(response, { body: name })]),
  );

  async function listenerOf(withTls: boolean): Promise<string> {
    const edge = await startEdge(servers, { mappings, services, addresses: { trustedProxies: ['127.0.0.1'] } });
    const { port } = await startHttp(servers, { handler: edge.listener, ...(withTls && { tls, http2: true }) });
    return `${withTls ? 'https' : 'http'}://127.0.0.1:${port}`;
  }

  it('gets those over TLS of both versions of HTTP, or those over plain HTTP, whatever X-Forwarded-Proto says', async () => {
    const plain = await fetch(await listenerOf(false), { headers: { 'X-Forwarded-Proto': 'https' } });
    assert.equal(await plain.text(), 'http');
    const origin = await listenerOf(true);
    assert.equal(await textOver1(origin, { 'X-Forwarded-Proto': 'http' }), 'https');
    const { session, send } = openHttp2(origin, { rejectUnauthorized: false });
    servers.later(() => session.destroy());
    assert.equal((await send({ 'x-forwarded-proto': 'http' })).body, 'https');
  });

  it('is explained by the scheme of the URL', async () => {
    const explain = explainOf(gatewayOf({ mappings, services }));
    for (const [url, name] of [
      ['/', 'http'],
      ['http://gw.example/', 'http'],
      ['https://gw.example/', 'https'],
    ] as const)
      assert.equal((await explain({ method: 'GET', url })).mapping?.name, name);
  });
});

async function textOver1(origin: string, headers: Readonly<Record<string, string>>): Promise<string> {
  const agent = new Agent({ rejectUnauthorized: false });
  const response = await new Promise<AsyncIterable<Buffer>>((resolve, reject) => {
    request(origin, { headers, agent }, resolve).on('error', reject).end();
  });
  let text = '';
  for await (const chunk of response) text += chunk;
  return text;
}
