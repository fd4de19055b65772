/** A page that calls a gRPC service through the gateway, with the gRPC-Web clients of Connect and of Google. */
import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import type { Middleware } from 'koa';
import type { Page } from 'playwright-core';
import type { AuthServiceInput, MappingInput } from '../../src/index.ts';
import { authRecord, demoRecord, desksOf, mappingRecord } from '../support/desks.ts';
import { makeCertificate } from '../support/wire/certificate.ts';
import { type GrpcTestService, grpcTestFiles, startGrpcTestService } from '../support/wire/grpc-test-service.ts';
import { describeInBrowser } from './browser.ts';
import type { Outcome } from './grpc-web-page.ts';

const files = grpcTestFiles.map((file) => file.toString('base64'));
const headersOfClients = ['Authorization', 'Content-Type', 'X-Grpc-Web', 'X-User-Agent'];
const two = { responseParameters: [{ size: 10 }, { size: 100_000 }] };
const missing = { responseStatus: { code: 5, message: 'no such order: "ü" %' } };

describeInBrowser('a page that calls a gRPC service', ({ servers, writeFiles, visit }) => {
  const openDesk = desksOf(servers);
  let service: GrpcTestService;
  let origin: string;
  let elsewhere: string;

  before(async function () {
    const tls = await makeCertificate(await writeFiles(), 'IP:127.0.0.1');
    if (tls === undefined) return this.skip();
    service = await startGrpcTestService(servers);
    const page = await bundlePage();
    const open = async (...records: readonly (MappingInput | AuthServiceInput)[]) => {
      const config = { records, users: [demoRecord] };
      const own = { tlsCert: tls.file, tlsKey: tls.keyFile };
      const desk = await openDesk({ config, services: { page }, demo: false, ...own });
      return (await desk.listen()).gateway.url;
    };
    const orders = (more: Partial<MappingInput>) =>
      mappingRecord('orders', '/grpc.testing.TestService', service.origin, { grpc: true, ...more });
    origin = await open(mappingRecord('page', '/page', 'page'), orders({}));
    const exposed_headers = ['Grpc-Status', 'Grpc-Message'];
    const cors = { origins: [origin], methods: ['POST'], headers: headersOfClients, exposed_headers };
    elsewhere = await open(orders({ cors }), authRecord);
  });

  async function load(expected?: RegExp): Promise<Page> {
    const options = { isAnonymous: true, ignoreHTTPSErrors: true, ...(expected && { expected }) };
    return (await visit(`${origin}/page`, options)).page;
  }

  /** Calls a function of the page's script. */
  function call(page: Page, name: string, request: object, where: object = { origin }): Promise<Outcome> {
    return page.evaluate(`${name}(${JSON.stringify({ files, ...where })}, ${JSON.stringify(request)})`);
  }

  for (const [client, suffix, notFound, unimplemented] of [
    ['Connect', '', '5 NotFound: ', '12 Unimplemented: '],
    ["Google's, in base64,", 'Text', '5 ', '12 '],
  ] as const)
    describe(`with the client of ${client}`, () => {
      it('gets a response, and a stream of them', async () => {
        const page = await load();
        assert.deepEqual(await call(page, `unary${suffix}`, { responseSize: 70_000 }), { sizes: [70_000] });
        assert.deepEqual(await call(page, `stream${suffix}`, two), { sizes: [10, 100_000] });
      });

      it('gets the status of the service, with its message, without a response and after some', async () => {
        const page = await load();
        const error = `${notFound}${missing.responseStatus.message}`;
        assert.deepEqual(await call(page, `unary${suffix}`, missing), { sizes: [], error });
        assert.deepEqual(await call(page, `stream${suffix}`, { ...two, ...missing }), { sizes: [10, 100_000], error });
      });

      it('gets the statuses of the gateway, also from another origin', async () => {
        const page = await load(/^requested https:/);
        const { sizes, error = '' } = await call(page, `unary${suffix}`, {}, { origin: `${origin}/nowhere` });
        assert.deepEqual([sizes, error.slice(0, unimplemented.length)], [[], unimplemented]);
        const refused = await call(page, `unary${suffix}`, {}, { origin: elsewhere });
        assert.match(refused.error ?? '', /^16 /);
        const headers = { Authorization: `Basic ${btoa('demo:demo')}` };
        const allowed = await call(page, `unary${suffix}`, { responseSize: 3 }, { origin: elsewhere, headers });
        assert.deepEqual(allowed, { sizes: [3] });
      });
    });

  it('cancels a stream at the service', async () => {
    const page = await load();
    const { sizes, error } = await call(page, 'cancel', { responseParameters: [{ size: 1 }, { size: -1 }] });
    assert.deepEqual([sizes, error?.split(':')[0]], [[1], '1 Canceled']);
    await service.cancelled;
  });
});

/** A service that responds with the page, which contains its script. */
async function bundlePage(): Promise<Middleware> {
  const entry = fileURLToPath(new URL('grpc-web-page.ts', import.meta.url));
  const { outputFiles } = await build({ entryPoints: [entry], bundle: true, format: 'iife', write: false });
  const script = outputFiles.map(({ text }) => text.replaceAll('</', '<\\/')).join();
  return (ctx) => {
    ctx.type = 'html';
    ctx.body = `<!DOCTYPE html><html lang=en><title>orders</title><script>${script}</script>`;
  };
}
