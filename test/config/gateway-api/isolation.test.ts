/** Which hosts of its listeners a route gets: those of a more specific listener belong to that one. */
import assert from 'node:assert/strict';
import { gateway, gatewayClass, httpRoute, objectOf } from '../../support/kubernetes/gateway-objects.ts';
import { createGateways } from './cluster.ts';

interface ListenerOptions {
  readonly from?: 'All' | 'Same';
  readonly port?: number;
}

const listener = (hostname: string | undefined, { from = 'All', port = 80 }: ListenerOptions = {}) => ({
  name: `${(hostname ?? 'any').replace('*', 'star')}-${port}`,
  ...{ port, protocol: 'HTTP', allowedRoutes: { namespaces: { from } } },
  ...(hostname !== undefined && { hostname }),
});

/** The hosts of the Mappings of a route from another namespace, and after a dash those that it does not get. */
async function hostsOf(
  hostnames: readonly string[],
  gateways: Readonly<Record<string, readonly ReturnType<typeof listener>[]>>,
  parentRefs: readonly object[] = Object.keys(gateways).map((name) => ({ name, namespace: 'default' })),
): Promise<readonly string[]> {
  const { accepted } = await createGateways()([
    objectOf(gatewayClass),
    ...Object.entries(gateways).map(([name, listeners]) => objectOf(gateway(name, listeners))),
    objectOf({ ...httpRoute('shop', [{}], 'shop'), spec: { parentRefs, hostnames, rules: [{}] } }),
  ]);
  assert.deepEqual(
    accepted.verdicts.flatMap(({ errors }) => errors),
    [],
  );
  return accepted.records.mappings.map(({ host, gatewayRoute }) => {
    const own = host === undefined ? 'all' : host.kind === 'suffix' ? `*${host.value}` : 'value' in host && host.value;
    return [own, ...(gatewayRoute?.otherHosts ?? [])].join(' - ');
  });
}

describe('a route at a listener with a wildcard', () => {
  const admin = listener('admin.example', { from: 'Same' });
  const star = listener('*.example');

  it('does not get a host for which it is not allowed', async () => {
    assert.deepEqual(await hostsOf(['admin.example', 'shop.example'], { edge: [star, admin] }), ['shop.example']);
  });

  it('does not get the host with a hostname of its own that stands for more', async () => {
    assert.deepEqual(await hostsOf(['*.example'], { edge: [star, admin] }), ['*.example - admin.example']);
  });

  it('does not get it without hostnames, nor at a listener for all hosts', async () => {
    assert.deepEqual(await hostsOf([], { edge: [star, admin] }), ['*.example - admin.example']);
    assert.deepEqual(await hostsOf([], { edge: [listener(undefined), admin] }), ['all - admin.example']);
  });

  it('does not get the hosts below a longer wildcard', async () => {
    const longer = listener('*.eu.example', { from: 'Same' });
    const found = await hostsOf(['a.eu.example', '*.eu.example', '*.example'], { edge: [star, longer] });
    assert.deepEqual(found, ['*.example - *.eu.example']);
  });

  it('does not get it at another port of HTTP, which leads to the same process', async () => {
    assert.deepEqual(await hostsOf(['admin.example'], { edge: [listener('*.example', { port: 8080 }), admin] }), []);
  });

  it('gets the host from its own listener if it is allowed there, too', async () => {
    const found = await hostsOf(['*.example'], { edge: [star, listener('admin.example')] });
    assert.deepEqual(found, ['*.example - admin.example', 'admin.example']);
  });

  it('gets only the rest if it names its listener', async () => {
    const parent = { name: 'edge', namespace: 'default', sectionName: star.name };
    const found = await hostsOf(['*.example'], { edge: [star, listener('admin.example')] }, [parent]);
    assert.deepEqual(found, ['*.example - admin.example']);
  });

  it('does not get the host of a listener of another Gateway, which shares the ports', async () => {
    const found = await hostsOf(['*.example'], { edge: [star], other: [admin] });
    assert.deepEqual(found, ['*.example - admin.example']);
  });

  it('gets the host of a listener that this process does not serve', async () => {
    const elsewhere = listener('admin.example', { from: 'Same', port: 9000 });
    assert.deepEqual(await hostsOf(['admin.example'], { edge: [star, elsewhere] }), ['admin.example']);
  });
});
