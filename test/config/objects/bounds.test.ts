/** What the objects of one namespace may cost, and what happens to those beyond it. */
import assert from 'node:assert/strict';
import { type ClusterObject, createObjectAcceptance } from '#config';
import { annotated, clusterObject, resource } from '../../support/kubernetes/cluster-objects.ts';

const mapping = (path: string, spec: object) => resource('Mapping', path, { service: 'orders', ...spec });

function createAcceptance(options: { readonly mappingsMax?: number; readonly gatewayDomain?: string } = {}) {
  return createObjectAcceptance({
    gatewayDomain: 'gateway.local',
    ...options,
    trusted: ['frontdesk'],
    directory: '.',
    strictPaths: true,
    findUnservable: () => [],
  });
}

async function accept(objects: readonly ClusterObject[], acceptance = createAcceptance()) {
  const { records, verdicts } = await acceptance.accept(objects);
  return {
    states: verdicts.map(({ state }) => state),
    errors: verdicts.flatMap(({ errors }) => errors.map(({ message, remedy }) => `${message}. ${remedy}`)),
    routes: records.mappings.map(({ prefix, refusal }) => (refusal === undefined ? prefix : `${prefix} refused`)),
  };
}

function recordText(fields: object): string {
  return JSON.stringify({ apiVersion: 'gateway/v1', kind: 'Mapping', name: 'long', service: 'orders', ...fields });
}

describe('an annotation', () => {
  const text = recordText({ prefix: '/long' });

  it('may have 65,536 characters', async () => {
    const { states, routes } = await accept([annotated('shop/long', text.padEnd(65_536))]);
    assert.deepEqual([states, routes], [['accepted'], ['/long']]);
  });

  it('that is longer is refused unread, and closes what could let its requests through', async () => {
    const open = mapping('shop/open', { prefix: '/open', bypass_auth: true });
    const guarded = mapping('shop/guarded', { prefix: '/guarded' });
    const { states, errors, routes } = await accept([annotated('shop/long', text.padEnd(65_537)), open, guarded]);
    assert.deepEqual(states, ['refused', 'accepted', 'accepted']);
    assert.deepEqual(errors, [
      'the annotation has 65537 characters, and at most 65536 are read. Split it over several Services.',
    ]);
    assert.deepEqual(routes, ['/open refused', '/guarded']);
  });

  it('with more than 1,000 documents is refused unread', async () => {
    const { states, errors } = await accept([annotated('shop/long', '--- {}\n'.repeat(1001))]);
    assert.deepEqual(states, ['refused']);
    assert.deepEqual(errors, [
      'the annotation has 1001 documents, and at most 1000 are read. Split it over several Services.',
    ]);
  });

  it('that becomes longer keeps its last valid version', async () => {
    const acceptance = createAcceptance();
    await accept([annotated('shop/long', text)], acceptance);
    const { states, routes } = await accept([annotated('shop/long', text.padEnd(65_537))], acceptance);
    assert.deepEqual([states, routes], [['last-valid'], ['/long']]);
  });

  it('that is longer and may have an AuthService closes what needs one', async () => {
    const auth = '{apiVersion: gateway/v1, kind: AuthService, name: auth, auth_service: "frontdesk:auth"}';
    const orders = mapping('shop/orders', { prefix: '/orders' });
    const { routes } = await accept([annotated('frontdesk/auth', auth.padEnd(65_537)), orders]);
    assert.deepEqual(routes, ['/orders refused']);
  });
});

describe('a small text', () => {
  const other = mapping('bar/other', { prefix: '/other' });

  for (const [what, fields, message] of [
    ['contains itself', 'labels: &x [*x]', 'is nested more than 64 levels deep'],
    [
      'repeats a list by aliases',
      `x: &x [${'1,'.repeat(900)}], y: [${'*x,'.repeat(30)}]`,
      'has more than 20000 values',
    ],
    [
      'repeats a text by aliases',
      `x: &x ${'v'.repeat(900)}, y: [${'*x,'.repeat(90)}]`,
      'has more than 65536 characters',
    ],
  ] as const)
    it(`that ${what} is refused unread, and stops no other object`, async () => {
      const text = `{apiVersion: gateway/v1, kind: Mapping, name: a, prefix: /a, service: b, ${fields}}`;
      const { states, errors, routes } = await accept([annotated('shop/a', text), other]);
      assert.deepEqual([states, routes], [['refused', 'accepted'], ['/other']]);
      assert.deepEqual(errors, [`this object ${message}. Split it, or remove some.`]);
    });
});

describe('an unread object with a kind of Ambassador that protects requests', () => {
  const policy = 'apiVersion: getambassador.io/v3alpha1\nkind: FilterPolicy\nname: login\n';
  const large = { rules: 'x'.repeat(65_537) };

  for (const [what, object] of [
    ['an annotation', annotated('shop/long', policy.padEnd(65_537), 'getambassador.io')],
    [
      'an annotation without room',
      annotated('shop/long', `${policy}---\n${recordText({ prefix: '/a' })}`, 'getambassador.io'),
    ],
    ['a resource', clusterObject('FilterPolicy', 'shop/long', { spec: large }, 'getambassador.io/v3alpha1')],
  ] as const)
    it(`closes the Mappings of its namespace: ${what}`, async () => {
      const older = annotated('shop/older', recordText({ prefix: '/older' }), 'getambassador.io');
      const other = annotated('bar/other', recordText({ prefix: '/other', name: 'other' }), 'getambassador.io');
      const { routes } = await accept(
        [older, object, other],
        createAcceptance({ gatewayDomain: 'getambassador.io', mappingsMax: 1 }),
      );
      assert.deepEqual(routes, ['/older refused', '/other']);
    });
});

describe('a resource of Ambassador', () => {
  const accepting = () => createAcceptance({ gatewayDomain: 'getambassador.io' });
  const ofAmbassador = (path: string, value: object) => clusterObject('Mapping', path, value, 'getambassador.io/v2');
  const spec = { prefix: '/a', service: 'orders' };
  const nested = (levels: number): unknown => (levels === 0 ? 'a' : [nested(levels - 1)]);

  it('has the same bounds beside its spec, where its definition permits any field', async () => {
    const other = ofAmbassador('bar/other', { spec: { prefix: '/other', service: 'orders' } });
    for (const [field, message] of [
      [nested(5000), 'is nested more than 64 levels deep'],
      ['x'.repeat(65_537), 'has more than 65536 characters'],
    ] as const) {
      const { states, errors } = await accept(
        [ofAmbassador('shop/a', { ambassador_id: field, spec }), other],
        accepting(),
      );
      assert.deepEqual(states, ['refused', 'accepted']);
      assert.deepEqual(errors, [`this object ${message}. Split it, or remove some.`]);
    }
  });

  it('may have annotations of any length', async () => {
    const metadata = { name: 'a', namespace: 'shop', annotations: { 'kubectl.kubernetes.io/x': 'x'.repeat(70_000) } };
    assert.deepEqual((await accept([ofAmbassador('shop/a', { metadata, spec })], accepting())).states, ['accepted']);
  });
});

describe('the Mappings of a namespace', () => {
  const many = (path: string, count: number, fields: object = {}) => {
    const name = path.replaceAll('/', '-');
    const texts = Array.from({ length: count }, (_, index) =>
      recordText({ name: `${name}-${index}`, prefix: `/${name}/${index}`, ...fields }),
    );
    return annotated(path, texts.join('\n---\n'));
  };
  const bound = (mappingsMax: number) => createAcceptance({ mappingsMax });
  const stateOf = async (objects: readonly ClusterObject[], acceptance = bound(10)) =>
    (await accept(objects, acceptance)).states;

  it('count from the oldest object, and one that does not fit is refused as a whole', async () => {
    const { states, errors } = await accept([many('shop/a', 6), many('shop/b', 5)], bound(10));
    assert.deepEqual(states, ['accepted', 'refused']);
    assert.deepEqual(errors, [
      'this object counts as 5 Mappings, and together with older objects the namespace shop would have more than the 10 of KUBERNETES_MAPPINGS_MAX. Remove Mappings or hostnames here or in older objects of shop, where each regular expression counts as five Mappings more, and each 4,000 characters of a Mapping as one, or ask the operators of frontdesk for a higher number.',
    ]);
  });

  it('do not keep a newer object from being used that still fits', async () => {
    assert.deepEqual(await stateOf([many('shop/a', 6), many('shop/b', 5), mapping('shop/c', { prefix: '/c' })]), [
      'accepted',
      'refused',
      'accepted',
    ]);
  });

  it('do not count for another namespace', async () => {
    const { states } = await accept([many('evil/a', 11), many('evil/b', 10), many('shop/a', 10)], bound(10));
    assert.deepEqual(states, ['refused', 'accepted', 'accepted']);
  });

  it('are unbounded in a trusted one', async () => {
    assert.deepEqual(await stateOf([many('frontdesk/a', 11)]), ['accepted']);
  });

  it('include those of resources, and of refused objects', async () => {
    const wrong = many('shop/wrong', 8, { weight: 'x' });
    const resources = ['a', 'b', 'c'].map((name) => mapping(`shop/${name}`, { prefix: `/${name}` }));
    const { errors, states } = await accept([wrong, ...resources], bound(10));
    assert.deepEqual(states, ['refused', 'accepted', 'accepted', 'refused']);
    assert.match(errors.at(-1) ?? '', /^this object counts as 1 Mapping, and/);
  });

  it('include each of their regular expressions', async () => {
    const regex = mapping('shop/regex', { prefix: '/a.*', prefix_regex: true, regex_headers: { a: 'b.*', c: 'd.*' } });
    assert.deepEqual(await stateOf([many('shop/a', 4), regex], bound(20)), ['accepted', 'accepted']);
    assert.deepEqual(await stateOf([many('shop/a', 5), regex], bound(20)), ['accepted', 'refused']);
  });

  it('include each class or range beyond ASCII in a regular expression', async () => {
    const wide = mapping('shop/wide', { prefix: '/\\pL[a-\u{1ffff}]', prefix_regex: true });
    assert.deepEqual(await stateOf([many('shop/a', 2), wide]), ['accepted', 'accepted']);
    assert.deepEqual(await stateOf([many('shop/a', 3), wide]), ['accepted', 'refused']);
  });

  it('include each 4,000 characters of one', async () => {
    const long = mapping('shop/long', {
      prefix: '/long',
      allow_addresses: Array.from({ length: 800 }, () => '10.0.0.1'),
    });
    assert.deepEqual(await stateOf([many('shop/a', 7), long]), ['accepted', 'accepted']);
    assert.deepEqual(await stateOf([many('shop/a', 8), long]), ['accepted', 'refused']);
  });

  it('that are beyond the bound guard by closing those with bypass_auth, and answer for no path', async () => {
    const open = mapping('shop/open', { prefix: '/open', bypass_auth: true });
    const other = mapping('bar/open', { prefix: '/bar', bypass_auth: true });
    const { routes, states } = await accept([open, other, many('shop/a', 10)], bound(10));
    assert.deepEqual(
      [routes, states],
      [
        ['/open refused', '/bar'],
        ['accepted', 'accepted', 'refused'],
      ],
    );
  });

  it('are the same whatever came first, because only the objects that are there count', async () => {
    const [old, young] = [many('shop/a', 6), many('shop/b', 5)];
    const acceptance = bound(10);
    assert.deepEqual(await stateOf([young], acceptance), ['accepted']);
    // Its version is still the last valid one, which does not fit any more.
    assert.deepEqual(await stateOf([old, young], acceptance), ['accepted', 'refused']);
    assert.deepEqual(await stateOf([young], acceptance), ['accepted']);
  });

  it('let an object that becomes too large keep its last valid version', async () => {
    const acceptance = bound(10);
    const small = many('shop/a', 2);
    await accept([small, many('shop/b', 5)], acceptance);
    const large = { ...many('shop/a', 11), createdAt: small.createdAt };
    const { states, routes } = await accept([large, many('shop/b', 5)], acceptance);
    assert.deepEqual([states, routes.length], [['last-valid', 'accepted'], 7]);
  });

  it('include last valid versions, as far as there is room beside the objects that are there', async () => {
    const old = many('shop/a', 9);
    const wrong = annotated('shop/a', recordText({ prefix: '/wrong', weight: 'x' }));
    const acceptance = bound(10);
    await accept([old], acceptance);
    assert.deepEqual(await stateOf([wrong, mapping('shop/b', { prefix: '/b' })], acceptance), [
      'last-valid',
      'accepted',
    ]);
    assert.deepEqual(await stateOf([wrong, many('shop/b', 2)], acceptance), ['refused', 'accepted']);
    assert.deepEqual(await stateOf([wrong], acceptance), ['refused']);
  });
});

describe('regular expressions', () => {
  const expressions = (count: number, pattern: string) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`x-${index}`, pattern]));

  for (const [what, count, pattern, expected] of [
    ['may be 200 in an object', 200, 'a+', []],
    ['of which there are more are not read', 201, 'a+', ['this object has more than 200 regular expressions']],
    ['may have 20 classes beyond ASCII', 10, '(?i)\\pL[a-\u{1ffff}]', []],
    [
      'with more of those are not read',
      7,
      '(?i)\\pL[a-\\x{1ffff}]\\P{Greek}',
      ['this object has more than 20 classes or ranges of characters beyond ASCII in regular expressions'],
    ],
  ] as const)
    it(what, async () => {
      for (const object of [
        mapping('frontdesk/regex', { prefix: '/', regex_headers: expressions(count, pattern) }),
        annotated('frontdesk/regex', recordText({ prefix: '/', regex_headers: expressions(count, pattern) })),
      ]) {
        const { errors } = await accept([object]);
        assert.deepEqual(
          errors,
          expected.map((message) => `${message}. Split it, or remove some.`),
        );
      }
    });
});

describe('another object', () => {
  const value = 'x'.repeat(60_000);
  for (const [what, spec] of [
    ['texts', { add_request_headers: { a: value, b: value } }],
    ['a key', { [value]: value }],
    ['texts in a list', { allow_addresses: [value, value] }],
  ] as const)
    it(`with more than 65,536 characters is refused unread: ${what}`, async () => {
      const { errors } = await accept([
        mapping('shop/a', { prefix: '/a', ...spec }),
        resource('RoutePolicy', 'shop/b', spec),
      ]);
      assert.deepEqual(errors, [
        'this object has more than 65536 characters. Split it, or remove some.',
        'spec has more than 65536 characters. Make it smaller.',
      ]);
    });
});

describe('the errors of an object', () => {
  it('are at most 100', async () => {
    const unknown = Object.fromEntries(Array.from({ length: 150 }, (_, index) => [`unknown${index}`, 1]));
    const { errors } = await accept([mapping('shop/a', { prefix: '/', ...unknown })]);
    assert.deepEqual(
      [errors.length, errors.at(-1)],
      [101, 'there are 50 more errors. Correct the errors above first.'],
    );
  });

  it('name what is long in part', async () => {
    const key = 'k'.repeat(50_000);
    const { errors } = await accept([mapping('shop/a', { prefix: '/', labels: { [key]: ['x', 'x'] } })]);
    assert.match(errors[0] ?? '', /^labels\.k{120}…\[0\] must be /);
  });

  // With the square of their number, it would take more than a minute.
  it('are found in one go, however many there are', async () => {
    const unknown = Array.from({ length: 9900 }, () => ({ a: 1 }));
    const { errors } = await accept([mapping('shop/a', { prefix: '/', health_checks: unknown })]);
    assert.match(errors[0] ?? '', /^unknown key "a" in health_checks\[0\]/);
  });
});
