/** The metrics endpoint of a gateway: methods and content type. */
import assert from 'node:assert/strict';
import request from 'supertest';
import type { Frontdesk } from '../../src/index.ts';
import { callAsDemo, desksOf } from '../support/desks.ts';
import { seriesOf } from '../support/scrape.ts';
import { testServers } from '../support/serve.ts';

const path = '/gateway/v0/metrics';

describe('the metrics endpoint of a gateway', () => {
  const open = desksOf(testServers(after));
  let desk: Frontdesk;

  before(async () => {
    desk = await open();
  });

  /** Values sent by Prometheus 2 and 3, with and without native histograms, and by other clients. */
  const accepts = [
    'application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1',
    'application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1',
    'application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.6,application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1',
    'application/openmetrics-text;version=1.0.0',
    'text/html,application/xhtml+xml',
    '',
  ];
  it('responds with plain text, whatever the Accept header', async () => {
    for (const accept of accepts) {
      const { text, headers } = await callAsDemo(desk, path).set('Accept', accept).expect(200);
      const expected = ['text/plain; version=0.0.4; charset=utf-8', 'no-store'];
      assert.deepEqual([headers['content-type'], headers['cache-control']], expected, accept);
      assert.equal(seriesOf(text)['frontdesk_configuration_generation'], 1);
    }
  });

  it('allows only GET and HEAD, at a single path', async () => {
    const ask = request(desk.app.callback());
    const as = { authorization: `Basic ${btoa('demo:demo')}` };
    const { text, headers } = await ask.head(path).set(as).expect(200);
    assert.deepEqual([text, headers['content-type']], [undefined, 'text/plain; version=0.0.4; charset=utf-8']);
    assert.ok(Number(headers['content-length']) > 1000);
    await ask.options(path).set(as).expect(204).expect('Allow', 'GET, HEAD, OPTIONS');
    await ask.post(path).set(as).expect(405).expect('Allow', 'GET, HEAD, OPTIONS');
    await ask.get(`${path}/`).set(as).expect(404);
    await ask.get('/metrics').set(as).expect(404);
  });
});
