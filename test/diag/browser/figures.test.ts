/** The total figures of all routes, and the digests that show which parts of the page must be fetched again. */
import assert from 'node:assert/strict';
import { limitFigures, structuresOf, summaryFigures } from '../../../src/diag/browser/figures.js';
import { busyRoute, busyTraffic, emptyDiagnostics, ownRoute, restingTraffic, sample } from '../diagnostics-sample.ts';

describe('summaryFigures', () => {
  const textsOf = (more: object) => {
    const { rate, errors, in_flight, sparkline } = summaryFigures({ ...emptyDiagnostics, ...more });
    return [rate?.text, errors?.text, in_flight?.text, sparkline?.text];
  };

  it('adds up all routes and the unmatched requests', () => {
    const second = { ...busyRoute, name: 'car' };
    const expected = '99 requests in five minutes, at most 12 a second; 15 of them failed';
    assert.deepEqual(textsOf({ routes: [busyRoute, second, ownRoute], unmatched: busyTraffic }), [
      ...['27,336', '15 %', '27,306', expected],
    ]);
  });

  it('counts routes with the same name once, because they share their traffic', () => {
    assert.deepEqual(textsOf({ routes: [busyRoute, busyRoute] }), textsOf({ routes: [busyRoute] }));
  });

  it('is zero without requests', () => {
    assert.deepEqual(textsOf({}), ['0', '0 %', '0', 'no requests in five minutes']);
  });
});

describe('limitFigures', () => {
  it('say how full a limit is, or that this process has not counted a hit', () => {
    const [limit = assert.fail()] = sample.limits;
    const textOf = (fullness: number | undefined) => limitFigures({ ...limit, fullness }).full?.text;
    assert.deepEqual([0, 0.62, 1.5, undefined].map(textOf), ['0 % full', '62 % full', '100 % full', 'no hits here']);
  });
});

describe('structuresOf', () => {
  const unanswered = { error: 1, last_error_at: '2026-12-31T23:59:59.000Z' };
  const before = structuresOf(sample);
  /** `expected` lists the parts that changed. */
  const check = (more: Partial<typeof sample>, expected: readonly string[]) => {
    const now = structuresOf({ ...sample, ...more });
    const changed = Object.entries(now).filter(
      ([name, structure]) => before[name as keyof typeof before] !== structure,
    );
    assert.deepEqual(
      changed.map(([name]) => name),
      expected,
    );
  };

  it('does not change when only figures change', () => {
    const [cluster] = sample.clusters;
    const [limit] = sample.limits;
    const [missed] = sample.unmatched_requests;
    assert.ok(cluster && limit && missed);
    const [first, second] = cluster.addresses;
    assert.ok(first && second);
    check(
      {
        ...{ at: '2027-01-01T00:00:00.000Z', uptime_seconds: 1, failures: [], unmatched: busyTraffic },
        routes: [
          { ...busyRoute, health: 'ok', traffic: { ...busyTraffic, requests: 1, recent: undefined } },
          { ...ownRoute, health: 'ok', traffic: { ...restingTraffic, requests: 3 } },
        ],
        clusters: [{ ...cluster, circuit: 'closed', addresses: [{ ...first, health: 'ejected' }, second] }],
        unmatched_requests: [{ ...missed, at: '2027-01-01T00:00:00.000Z', requests: 1 }],
        limits: [{ ...limit, hits: 1, over: 1, fullness: undefined }],
        ...{ auth: { allowed: 0, denied: 0, ...unanswered }, ratelimit: { ok: 0, over: 0, ...unanswered } },
      },
      [],
    );
  });

  it('changes with the text of a row and with the number of rows', () => {
    check({ configuration: { ...sample.configuration, generation: 2 } }, ['summary']);
    check({ ratelimit: undefined }, ['summary']);
    check({ errors: [], errors_total: 0 }, ['errors']);
    check({ routes: [ownRoute, busyRoute] }, ['routes']);
    check({ routes: [{ ...busyRoute, target: 'elsewhere' }, ownRoute] }, ['routes']);
    check({ routes_matching: 3 }, ['routes']);
    check({ versions: [] }, ['versions']);
    check({ services: [] }, ['clusters']);
    check({ limits_total: 2 }, ['limits']);
    check({ unmatched_requests: [] }, ['unmatched']);
  });

  it('also works for empty diagnostics', () => {
    assert.equal(Object.keys(structuresOf(emptyDiagnostics)).length, 7);
  });
});
