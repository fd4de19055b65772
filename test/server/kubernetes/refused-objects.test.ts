/** What the log says about refused objects of a cluster: each once, and all of them again after ten minutes. */
import assert from 'node:assert/strict';
import { mock } from 'node:test';
import type { Refusal } from '#config';
import { createRefusals } from '../../../src/server/reload.ts';

const refusalOf = (name: string, message = 'prefix is missing'): Refusal => ({
  part: 'records',
  object: `Mapping shop/${name}`,
  consequence: 'its last valid version stays',
  errors: [
    {
      source: { file: `Mapping shop/${name}`, line: 0 },
      record: `Mapping ${name}`,
      message,
      remedy: 'prefix: /v1/orders',
    },
  ],
});

function createTestRefusals() {
  const lines: string[] = [];
  const line = (_: object, message = '') => void lines.push(message);
  let nowMs = 1_000;
  const refusals = createRefusals({ logger: { info: line, warn: line, error: line }, clock: () => nowMs }, () => 1);
  return {
    refusals,
    update(...refused: readonly Refusal[]) {
      nowMs += 1_000;
      lines.splice(0);
      refusals.update(refused);
      return lines;
    },
    lines,
  };
}

describe('the log of refused objects', () => {
  beforeEach(() => mock.timers.enable({ apis: ['setInterval'] }));
  afterEach(() => mock.timers.reset());

  const [orders, cakes] = [refusalOf('orders'), refusalOf('cakes')];
  const textOf = (name: string) =>
    `Mapping shop/${name}  Mapping ${name}: prefix is missing\n    prefix: /v1/orders\n    Until then, its last valid version stays.`;

  it('names each object with its errors and what holds until they are fixed', () => {
    const { update } = createTestRefusals();
    assert.deepEqual(update(orders), [`an object of the cluster is refused:\n${textOf('orders')}`]);
  });

  it('mentions only what is new, and what is accepted again', () => {
    const { update, refusals } = createTestRefusals();
    update(orders);
    assert.deepEqual(update(orders), []);
    assert.deepEqual(update(structuredClone(orders), cakes), [
      `an object of the cluster is refused:\n${textOf('cakes')}`,
    ]);
    assert.deepEqual(
      refusals.current().map(({ sinceMs }) => sinceMs),
      [2_000, 4_000],
    );
    assert.deepEqual(update(refusalOf('orders', 'service is missing'), cakes).length, 1);
    assert.deepEqual(update(cakes), ['no longer refused: Mapping shop/orders']);
    assert.deepEqual(update(), ['no longer refused: Mapping shop/cakes']);
  });

  it('has one line for very many objects, with the first of them', () => {
    const { update } = createTestRefusals();
    const [line = '', ...more] = update(...Array.from({ length: 500 }, (_, index) => refusalOf(`m${index}`)));
    assert.deepEqual(more, []);
    assert.match(line, /^500 objects of the cluster are refused:\n/);
    assert.match(line, /\nand 450 more: frontdesk check --kubernetes lists all of them$/);
  });

  it('repeats all of them every ten minutes', () => {
    const { update, lines } = createTestRefusals();
    update(orders, cakes);
    update(orders, cakes);
    mock.timers.tick(600_000);
    assert.deepEqual(lines, [`2 objects of the cluster are refused:\n${textOf('orders')}\n${textOf('cakes')}`]);
  });
});
