/** No representation of the diagnostics shows the secrets of a configuration or of failed requests. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { authRecord, call, callAsDemo, desksOf, limitRecord, mappingRecord, type TestDesk } from '../support/desks.ts';
import { testServers } from '../support/serve.ts';
import { replaceFile, temporaryFiles, yamlOf } from '../support/temporary-files.ts';
import { readEvents } from '../support/wire/event-reader.ts';

const path = '/gateway/v0/diag/';
/** A text that only the secrets contain. */
const mark = 'hunter2';
const basic = `Basic ${Buffer.from('demo:demo').toString('base64')}`;

const good = [
  authRecord,
  { ...limitRecord, service: 'ratelimit' },
  mappingRecord('keyed', '/keyed', 'http://127.0.0.1:1', {
    headers: { Authorization: `Bearer ${mark}-1`, 'x-api-key': `${mark}-2`, 'x-plan': `${mark}-19` },
    regex_headers: { 'x-color': `${mark}-20|red` },
    query_parameters: { token: `${mark}-3`, v: `${mark}-21` },
    regex_query_parameters: { w: `${mark}-22|blue` },
    add_request_headers: { Authorization: `Basic ${mark}-4`, 'X-Session': `${mark}-5`, 'X-Tier': `${mark}-23` },
    add_response_headers: { 'Set-Cookie': `session=${mark}-6`, 'X-Served': `${mark}-24` },
    labels: { gateway: [{ keys: [{ api_key: { header: 'x-api-key', omit_if_not_present: true } }] }] },
  }),
  mappingRecord('away', '/away', 'http://127.0.0.1:1'),
];

/** Each record is rejected for a different reason. */
const broken = [
  mappingRecord('url', '/url', `http://ann:${mark}-7@127.0.0.1:1`),
  mappingRecord('slash', '/slash', `http://ann:p/${mark}-8@127.0.0.1:1`),
  mappingRecord('url-only-user', '/user', `https://${mark}-9@hotel`),
  {
    ...mappingRecord('header', '/header', 'hotel'),
    add_request_headers: { Authorization: [`${mark}-10`] },
  },
  mappingRecord('header-value', '/value', 'hotel', { add_request_headers: { Authorization: `${mark}-11\n` } }),
  mappingRecord('pattern', '/pattern', 'hotel', { regex_headers: { 'x-api-key': `${mark}-12(` } }),
  mappingRecord('url-query', '/query', `http://ann:${mark}-25@h/?k=${mark}-26`),
  mappingRecord('url-query-alone', '/alone', `http://h/?k=${mark}-27`),
  mappingRecord('harmless-header', '/harmless', 'hotel', { regex_headers: { 'x-plan': `${mark}-28(` } }),
  mappingRecord('look-around', '/around', 'hotel', { regex_headers: { 'x-plan': `(?=${mark}-29)` } }),
  mappingRecord('parameter', '/parameter', 'hotel', { regex_query_parameters: { v: `${mark}-30(` } }),
  mappingRecord('long', '/long', 'hotel', { regex_query_parameters: { v: `${mark}-31`.repeat(500) } }),
  { ...mappingRecord('unknown', '/unknown', 'hotel'), password: `${mark}-13` },
];

const limits = {
  domain: 'gateway',
  descriptors: [
    {
      key: 'api_key',
      value: `${mark}-14`,
      rate_limit: { unit: 'minute', requests_per_unit: 1000 },
      descriptors: [{ key: 'generic_key', value: 'gold', rate_limit: { unit: 'minute', requests_per_unit: 5 } }],
    },
    { key: 'plan', value: `${mark}-32`, rate_limit: { unit: 'minute', requests_per_unit: 9 } },
  ],
};

describe('the diagnostics of a configuration full of secrets', () => {
  const servers = testServers(after);
  const open = desksOf(servers);
  const writeFiles = temporaryFiles();
  let desk: TestDesk;
  let url = '';

  before(async () => {
    const config = await writeFiles({
      'services/good.yaml': yamlOf(...good),
      'ratelimit/gateway.yaml': JSON.stringify(limits),
      'users.yaml': await readFile('config/users.yaml', 'utf8'),
    });
    desk = await open({ config, only: ['gateway', 'auth', 'ratelimit'] });
    url = (await desk.listen()).gateway.url;
    await replaceFile(join(config, 'services/broken.yaml'), yamlOf(...broken));
    await desk.reload();
    await call(desk, `/away/http:/ann:${mark}-15@host?token=${mark}-16`).set('Authorization', basic);
    await call(desk, `/away/http%3A%2F%2Fann%3A${mark}-17%40host/x`).set('Authorization', basic);
    await call(desk, `/away/${'x'.repeat(478)}/http://ann:${mark}-18@host`).set('Authorization', basic);
    await call(desk, `/keyed?token=${mark}-3&v=${mark}-21`).set({
      Authorization: `Bearer ${mark}-1`,
      'X-Api-Key': `${mark}-2`,
    });
  });

  const forms = {
    JSON: async () => (await callAsDemo(desk, path).expect(200)).text,
    YAML: async () => (await callAsDemo(desk, path).set('Accept', 'application/yaml').expect(200)).text,
    events: async () => {
      const { next, disconnect } = await readEvents(`${url}${path}events`, { Authorization: basic });
      const { data = '' } = (await next()) ?? assert.fail('it ended');
      disconnect();
      return data;
    },
  };

  for (const [form, read] of Object.entries(forms)) {
    it(`do not show them: ${form}`, async () => {
      const text = await read();
      for (const shown of ['keyed', 'gold', 'api_key', 'generic_key', 'url-only-user']) {
        assert.ok(text.includes(shown), `${shown} is not there`);
      }
      const at = text.indexOf(mark);
      assert.equal(at, -1, text.slice(Math.max(0, at - 200), at + 50));
      assert.doesNotMatch(text, /scrypt/);
    });
  }

  it('cannot be filtered by a part of a secret', async () => {
    const { body } = await callAsDemo(desk, `${path}?filter=${mark}`).expect(200);
    assert.deepEqual([body.routes, body.services, body.clusters], [[], [], []]);
  });
});
