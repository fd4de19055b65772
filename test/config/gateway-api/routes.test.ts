/** The Mappings that rules of routes become, in what no record can say. */
import assert from 'node:assert/strict';
import { createGatewayApi, createObjectAcceptance, type Mapping } from '#config';
import { clusterObject } from '../../support/kubernetes/cluster-objects.ts';
import { gateway, gatewayClass, httpRoute, objectOf } from '../../support/kubernetes/gateway-objects.ts';

const service = clusterObject('Service', 'default/orders', { spec: { ports: [{ port: 80 }] } }, 'v1');

/** The Mappings of a route with one rule, whose Gateway has listeners of HTTP at these ports. */
async function mappingsOf(rule: object, ports: readonly number[] = [80]): Promise<readonly Mapping[]> {
  const listeners = ports.map((port) => ({ name: `http-${port}`, port, protocol: 'HTTP' }));
  const route = httpRoute('shop', [{ backendRefs: [{ name: 'orders', port: 80 }], ...rule }]);
  const trusted = ['default'];
  const { routes } = await createGatewayApi({ trusted, addresses: [], ports: { http: [80, 8080], https: [] } }).resolve(
    [gatewayClass, gateway('edge', listeners), route].map(objectOf).concat(service),
    [],
  );
  const options = { gatewayDomain: 'gateway.local', directory: '.', strictPaths: true, findUnservable: () => [] };
  const { records, verdicts } = await createObjectAcceptance({ ...options, trusted }).accept(routes);
  assert.deepEqual(
    verdicts.flatMap(({ errors }) => errors.map(({ message }) => message)),
    [],
  );
  return records.mappings;
}

describe('a redirect of a route', () => {
  const redirectTo = (requestRedirect: object) => ({
    backendRefs: [],
    filters: [{ type: 'RequestRedirect', requestRedirect }],
  });

  const hostname = 'new.example';
  for (const [what, spec, ports, expected] of [
    ['keeps the usual port out', { hostname }, [80], { host: hostname }],
    ['keeps the port of a listener for another host', { hostname }, [8080], { host: hostname, port: 8080 }],
    ['leaves the port out if there are several', { hostname }, [80, 8080], { host: hostname }],
    ['has the usual port of its scheme', { hostname, scheme: 'https' }, [8080], { scheme: 'https', host: hostname }],
    ['has the port that it names', { hostname, port: 81 }, [8080], { host: hostname, port: 81 }],
    ['keeps the host and the port of the client', { path: { type: 'ReplaceFullPath' } }, [8080], {}],
  ] as const)
    it(what, async () => {
      const [mapping] = await mappingsOf(redirectTo(spec), ports);
      const { scheme, host, port, status } = mapping?.redirect ?? {};
      const all = { scheme: undefined, host: undefined, port: undefined, status: 302, ...expected };
      assert.deepEqual({ scheme, host, port, status }, all);
    });
});

describe('the CORS filter of a route', () => {
  for (const allowCredentials of [true, false])
    it(`may have stars ${allowCredentials ? 'with' : 'without'} credentials`, async () => {
      const all = { allowOrigins: ['*'], allowMethods: ['*'], allowHeaders: ['*'], allowCredentials };
      const [mapping] = await mappingsOf({ filters: [{ type: 'CORS', cors: all }] });
      const { origins, methods, headers, credentials } = mapping?.cors ?? {};
      assert.deepEqual(
        { origins, methods, headers, credentials },
        {
          origins: ['*'],
          methods: ['*'],
          headers: ['*'],
          credentials: allowCredentials,
        },
      );
    });
});
