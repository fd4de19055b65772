/** What is wrong with a body is told at once, each fault by its place. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { z } from 'zod';
import { bodyPointer, createBodySchema, type Fault, Problem } from '#http';

const check = createBodySchema(
  z.strictObject({
    name: z.string(),
    nights: z.int().min(1).optional(),
    guest: z.strictObject({ age: z.int() }).optional(),
    tags: z.array(z.string()).optional(),
  }),
);

function faultsOf(body: unknown): readonly Fault[] {
  try {
    check(body);
    return [];
  } catch (error) {
    assert.ok(error instanceof Problem && error.slug === 'bad-body' && error.status === 400);
    return error.errors ?? [];
  }
}

const pointersOf = (body: unknown) => faultsOf(body).map(({ pointer }) => pointer);

describe('createBodySchema', () => {
  it('gives what the schema makes of the body', () => {
    assert.deepEqual(check({ name: 'a', nights: 2 }), { name: 'a', nights: 2 });
  });

  it('names every fault by a JSON pointer, at any depth', () => {
    const body = { nights: 0, guest: { age: 'old' }, tags: ['a', 5] };
    assert.deepEqual(pointersOf(body).toSorted(), ['/guest/age', '/name', '/nights', '/tags/1']);
  });

  it('says of a field that it is missing, and of another that it is of another type', () => {
    assert.deepEqual(faultsOf({}), [{ pointer: '/name', detail: 'is missing' }]);
    assert.match(faultsOf({ name: 5 })[0]?.detail ?? '', /expected string, received number/);
  });

  it('points to the whole for what is no object', () => {
    for (const body of [null, [], 'text', 5]) assert.deepEqual(pointersOf(body), ['']);
  });

  it('refuses unknown fields, and names the known ones', () => {
    const [fault] = faultsOf({ name: 'a', nigths: 2 });
    assert.deepEqual(fault, { pointer: '/nigths', detail: 'is no field here; known: name, nights, guest, tags' });
    for (const name of ['__proto__', 'constructor', 'toString']) {
      assert.deepEqual(pointersOf(JSON.parse(`{"name":"a","${name}":{"x":1}}`)), [`/${name}`]);
      assert.deepEqual(pointersOf(JSON.parse(`{"name":"a","guest":{"age":1,"${name}":1}}`)), [`/guest/${name}`]);
    }
  });

  it('refuses text that a database cannot hold', () => {
    for (const name of ['a\0b', '\ud800', 'x\udc00y']) assert.deepEqual(pointersOf({ name }), ['/name']);
    assert.deepEqual(pointersOf({ name: 'a', tags: ['\0'] }), ['/tags/0']);
    assert.deepEqual(check({ name: '\u{1f600}' }), { name: '\u{1f600}' });
  });

  it('stays short, however much is wrong', () => {
    const names = Array.from({ length: 5000 }, (_, index) => [`${'long'.repeat(200)}${index}`, 1]);
    const faults = faultsOf(Object.fromEntries(names));
    assert.equal(faults.length, 20);
    assert.ok(JSON.stringify(faults).length < 5000);
  });

  it('bears any depth of nesting', () => {
    assert.deepEqual(pointersOf(JSON.parse(`${'['.repeat(200_000)}${']'.repeat(200_000)}`)), ['']);
    assert.deepEqual(pointersOf(JSON.parse(`${'{"a":'.repeat(50_000)}1${'}'.repeat(50_000)}`)).slice(0, 1), ['/name']);
  });
});

describe('jsonPointer', () => {
  it('escapes what stands for something else (RFC 6901)', () => {
    assert.equal(bodyPointer([]), '');
    assert.equal(bodyPointer(['a', 0, 'b/c~d', '']), '/a/0/b~1c~0d/');
  });

  it('leads back to the names it was made of', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ maxLength: 30 })), (path) => {
        const steps = bodyPointer(path).split('/').slice(1);
        assert.deepEqual(
          steps.map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~')),
          path,
        );
      }),
    );
  });
});
