/** Which routes have series: all while there are few of them, and those that had requests where there are many. */
import assert from 'node:assert/strict';
import { createTraffic, durationBoundsMs, type Traffic } from '#gateway';
import { formatFamilies } from '../../src/metrics/exposition.ts';
import { createRouteFamilies } from '../../src/metrics/route-families.ts';
import { seriesOf } from '../support/scrape.ts';

describe('the metrics of routes', () => {
  async function mappingsIn(traffic: Traffic): Promise<string[]> {
    const families = createRouteFamilies({ all: traffic.routes, durationBoundsMs });
    const series = seriesOf(await formatFamilies(families));
    const names = Object.keys(series).filter((key) => key.startsWith('frontdesk_requests_in_flight '));
    return names.map((key) => key.replace('frontdesk_requests_in_flight ', ''));
  }

  function trafficOf(routes: number): Traffic {
    const traffic = createTraffic();
    for (let number = 0; number < routes; number += 1) traffic.hold(`route-${number}`);
    return traffic;
  }

  it('are there from the start, so that a first error is an increase', async () => {
    assert.equal((await mappingsIn(trafficOf(999))).length, 1_000);
  });

  it('are those of routes with requests alone where there are more than a thousand', async () => {
    const traffic = trafficOf(1_000);
    assert.deepEqual(await mappingsIn(traffic), []);
    traffic.of('route-7')?.count({ status: 200, durationMs: 1, refusedBy: undefined }, 0);
    const busy = traffic.of('route-8');
    if (busy) busy.inFlight = 1;
    assert.deepEqual(await mappingsIn(traffic), ['route-7', 'route-8']);
  });
});
