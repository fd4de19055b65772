/** OpenAPI documents: valid according to an independent validator, and correct for a mounted desk. */
import assert from 'node:assert/strict';
import type { RequestListener } from 'node:http';
import { Validator } from '@seriousme/openapi-schema-validator';
import Koa from 'koa';
import mount from 'koa-mount';
import request, { type Test } from 'supertest';
import { parse } from 'yaml';
import type { VersionInput } from '#config';
import { problemTable } from '../../src/server/problems.ts';
import { desksOf, mappingRecord } from '../support/desks.ts';
import { testServers } from '../support/serve.ts';

interface ErrorExample {
  readonly code: number;
  readonly message: string;
  readonly status?: number;
}

interface ErrorMedia {
  readonly examples: Readonly<Record<string, { readonly value: ErrorExample }>>;
}

interface ErrorResponse {
  readonly $ref?: string;
  readonly description?: string;
  readonly content?: Readonly<Record<string, ErrorMedia>>;
  readonly headers?: Readonly<Record<string, { readonly required?: boolean }>>;
}

interface WithResponses {
  readonly components: { readonly responses: Readonly<Record<string, ErrorResponse>> };
}

interface DocumentedOperation {
  readonly operationId: string;
  readonly deprecated?: boolean;
  readonly responses: Readonly<Record<string, ErrorResponse>>;
}

function operationsOf({ paths }: { readonly paths: Readonly<Record<string, object>> }): readonly DocumentedOperation[] {
  return Object.values<object>(paths).flatMap((item): DocumentedOperation[] => Object.values(item));
}

function resolve(response: ErrorResponse, { components }: WithResponses): ErrorResponse {
  return components.responses[response.$ref?.split('/').at(-1) ?? ''] ?? response;
}

/** Returns the different statuses in the examples of a response, each of which has at least one in every media type. */
function exampleStatuses(response: ErrorResponse, document: WithResponses): readonly number[] {
  const media = Object.values(resolve(response, document).content ?? {});
  assert.ok(media.length > 0 && media.every(({ examples }) => Object.keys(examples).length > 0));
  const values = media.flatMap(({ examples }) => Object.values(examples).map(({ value }) => value));
  return [
    ...new Set(values.flatMap(({ code, message, status = code }) => [code, status, Number.parseInt(message, 10)])),
  ];
}

const titles: Readonly<Record<string, string>> = {
  '/v1': 'Messages and accounts, version 1',
  '/v2': 'Messages and accounts, version 2',
  '/v1/hotels': 'Hotels',
  '/v1/cars': 'Cars',
};

describe('OpenAPI documents', () => {
  const servers = testServers(after);
  const openDesk = desksOf(servers);
  // Shared, because it compiles the OpenAPI schema only once.
  const validator = new Validator();
  let monolith: RequestListener;
  let embedded: RequestListener;

  before(async () => {
    const desk = await openDesk();
    monolith = desk.app.callback();
    embedded = new Koa().use(mount('/travel', desk.middleware)).callback();
  });

  const get = (handler: RequestListener, path: string): Test => request(handler).get(path).auth('demo', 'demo');

  for (const [prefix, title] of Object.entries(titles)) {
    it(`are valid OpenAPI 3.1: ${prefix}`, async () => {
      const { body } = await get(monolith, `${prefix}/openapi.json`).expect(200);
      const { valid, errors } = await validator.validate(body);
      assert.ok(valid, JSON.stringify(errors));
      assert.equal(validator.version, '3.1');
      assert.equal(body.info.title, title);
      assert.equal(body.tags[0].name, title, 'the group of the root comes first');
      const ids = operationsOf(body).map(({ operationId }) => operationId);
      assert.ok(ids.length > 4 && new Set(ids).size === ids.length, 'operation IDs must be unique');
      const { body: mounted } = await get(embedded, `/travel${prefix}/openapi.json`).expect(200);
      for (const [{ servers: urls }, path] of [
        [body, prefix],
        [mounted, `/travel${prefix}`],
      ] as const)
        assert.match(urls[0].url, new RegExp(`^http://127\\.0\\.0\\.1:\\d+${path}$`));
    });
  }

  it('have the same content in every representation', async () => {
    const documentOf = async (path: string, type: string) => {
      const { text, headers } = await get(monolith, path).set('Accept', type).set('Host', 'desk.test').expect(200);
      return { document: type.endsWith('yaml') ? parse(text) : JSON.parse(text), type: headers['content-type'] };
    };
    const { document } = await documentOf('/v1/hotels/openapi.json', '*/*');
    assert.equal(document.servers[0].url, 'http://desk.test/v1/hotels');
    const openApi = 'application/vnd.oai.openapi+json;version=3.1';
    for (const type of ['application/json', 'application/yaml', openApi]) {
      assert.deepEqual(await documentOf('/v1/hotels/openapi.json', type), { document, type });
    }
    assert.deepEqual((await documentOf('/v1/hotels/docs/', 'application/yaml')).document, document);
  });

  it('can be read without credentials only if their operations can', async () => {
    for (const [prefix, status] of Object.entries({ '/v1': 200, '/v1/hotels': 401 }))
      for (const path of ['openapi.json', 'docs/']) await request(monolith).get(`${prefix}/${path}`).expect(status);
  });

  it('are linked from the root of their version or service, in addition to its other links', async () => {
    for (const path of ['/v2/', '/v1/cars', '/v1/cars/']) {
      const { headers } = await get(embedded, `/travel${path}`).expect(200);
      const base = `/travel${path.replace(/\/$/, '')}`;
      const links = Object.fromEntries(
        Array.from(String(headers['link']).matchAll(/<([^>]*)>; rel="([\w-]+)"/g), ([, to, name]) => [name, to]),
      );
      assert.equal(links['service-desc'], `${base}/openapi.json`);
      assert.equal(links['service-doc'], `${base}/docs/`);
      assert.equal('first' in links, path !== '/v2/');
      for (const link of ['service-desc', 'service-doc']) await get(embedded, String(links[link])).expect(200);
      const { text } = await get(embedded, `/travel${path}`).set('Accept', 'text/html');
      const [, href = ''] = /<a href="([^"]*)">API docs<\/a>/.exec(text) ?? [];
      assert.equal(new URL(href, `http://desk.test/travel${path}`).pathname, `${base}/docs/`);
    }
  });

  it('declare that bookings require credentials and messages do not', async () => {
    const { body: hotels } = await get(monolith, '/v1/hotels/openapi.json');
    assert.deepEqual(hotels.security, [{ basic: [] }]);
    assert.equal(hotels.components.securitySchemes.basic.scheme, 'basic');
    const { body: messages } = await get(monolith, '/v1/openapi.json');
    assert.deepEqual(messages.security, []);
  });

  it('describe arguments that are whole numbers as integers', async () => {
    for (const [prefix, name] of Object.entries({ '/v1/hotels': 'guests', '/v1/cars': 'count' })) {
      const { body } = await get(monolith, `${prefix}/openapi.json`);
      const parameters: { name: string; schema: { type: string } }[] = body.paths['/'].get.parameters;
      const integers = parameters.filter(({ schema }) => schema.type === 'integer').map((one) => one.name);
      assert.deepEqual(integers, [name, 'limit', 'offset']);
    }
  });

  it('have only schemas that client generators turn into working code', async () => {
    for (const prefix of Object.keys(titles)) {
      const { body } = await get(monolith, `${prefix}/openapi.json`);
      JSON.stringify(body, (_name, value) => {
        assert.ok(!(value?.format && value.pattern), 'Python applies the pattern to a time that is no longer text');
        assert.ok(!Array.isArray(value?.default), 'Go does not compile the default of a list');
        assert.ok(!value?.uniqueItems, 'Java uses a set, which has no order');
        if (value?.name === 'offset') assert.ok(!('default' in value.schema), 'Go sends defaults, even with `after`');
        return value;
      });
    }
  });

  it('describe one body for each response, and let clients leave out what has a default', async () => {
    for (const prefix of Object.keys(titles)) {
      const { body } = await get(monolith, `${prefix}/openapi.json`);
      JSON.stringify(body, (name, value) => {
        assert.ok(!name.startsWith('text/'), `${prefix}: a client would have to rule out text`);
        assert.ok(name !== 'anyOf' && name !== 'oneOf', `${prefix}: a client would have to find out which one it is`);
        return value;
      });
      for (const [name, schema] of Object.entries<{ properties?: object }>(body.components.schemas))
        for (const [field, property] of Object.entries(schema.properties ?? {}))
          assert.ok(!('default' in property), `${prefix}: openapi-typescript requires ${name}.${field}`);
    }
  });

  for (const prefix of Object.keys(titles)) {
    it(`have examples of errors with the status of their response: ${prefix}`, async () => {
      const { body } = await get(monolith, `${prefix}/openapi.json`);
      for (const { operationId, responses } of operationsOf(body)) {
        const failures = Object.entries(responses).filter(([status]) => !/^[23]/.test(status));
        assert.ok(failures.length > 2, operationId);
        for (const [status, response] of failures)
          assert.deepEqual(exampleStatuses(response, body), [status === 'default' ? 500 : Number(status)], operationId);
      }
    });
  }

  for (const prefix of Object.keys(titles)) {
    it(`declare \`Retry-After\` for problems that have it, and require it if all of a response do: ${prefix}`, async () => {
      const { body } = await get(monolith, `${prefix}/openapi.json`);
      const responses = operationsOf(body).flatMap((operation) => Object.values(operation.responses));
      for (const { description, content = {}, headers } of responses.map((one) => resolve(one, body))) {
        const slugs = Object.values(content).flatMap(({ examples = {} }) => Object.keys(examples));
        const waiting = slugs.filter((slug) => problemTable[slug]?.retryAfterSeconds !== undefined);
        const expected = waiting.length > 0 ? waiting.length === slugs.length : undefined;
        const header = headers?.['Retry-After'];
        assert.equal(header && header.required === true, expected, description);
      }
    });
  }

  it('mark the operations of a version that a Version record deprecates, here and in another process', async () => {
    const version = (deprecated: boolean): VersionInput => ({
      apiVersion: 'gateway/v1',
      kind: 'Version',
      name: 'hotels',
      prefix: '/v1/hotels',
      ...(deprecated ? { deprecation: '2026-01-01' } : { sunset: '2100-01-01' }),
    });
    const mapping = mappingRecord('hotel', '/v1/hotels', 'hotel');
    const service = await openDesk({
      only: ['hotel'],
      demo: false,
      config: { records: [] },
      trustedProxies: ['127.0.0.1'],
    });
    const { port } = (await service.listen()).gateway;
    for (const deprecated of [true, false]) {
      const records = [mapping, version(deprecated)];
      const here = await openDesk({ demo: false, config: { records }, databaseUrl: 'sqlite::memory:' });
      const apart = await openDesk({
        only: ['gateway'],
        demo: false,
        config: { records },
        serviceAddresses: { hotel: `127.0.0.1:${port}` },
      });
      for (const desk of [here, apart]) {
        const { body } = await request(desk.app.callback()).get('/v1/hotels/openapi.json').expect(200);
        const marks = operationsOf(body).map((operation) => operation.deprecated ?? false);
        assert.deepEqual([...new Set(marks)], [deprecated]);
      }
    }
    const forged = { 'X-Forwarded-Deprecation': '?1;sunset=@4102444800' };
    const { body } = await get(monolith, '/v1/hotels/openapi.json').set(forged);
    assert.equal(body.paths['/'].get.deprecated, undefined);
    assert.doesNotMatch((await get(monolith, '/v1/hotels/docs/').set(forged)).text, /This version/);
  });

  it('say on their pages when a version is deprecated and ends, and what replaces it, here and in another process', async () => {
    const version = { apiVersion: 'gateway/v1', kind: 'Version', name: 'hotels', prefix: '/v1/hotels' } as const;
    const service = await openDesk({
      only: ['hotel'],
      demo: false,
      config: { records: [] },
      trustedProxies: ['127.0.0.1'],
    });
    const { port } = (await service.listen()).gateway;
    for (const [dates, text] of [
      [
        { deprecation: '2026-01-01', sunset: '2100-02-03', successor: '/v2/hotels' },
        'The deprecation date of this version is 2026-01-01. This version ends on 2100-02-03. Use its successor.',
      ],
      [{ sunset: '2100-02-03' }, 'This version ends on 2100-02-03. '],
    ] as const) {
      const records = [mappingRecord('hotel', '/v1/hotels', 'hotel'), { ...version, ...dates }];
      const serviceAddresses = { hotel: `127.0.0.1:${port}` };
      for (const desk of [
        await openDesk({ demo: false, config: { records }, databaseUrl: 'sqlite::memory:' }),
        await openDesk({ only: ['gateway'], demo: false, config: { records }, serviceAddresses }),
      ]) {
        const page = await request(desk.app.callback()).get('/v1/hotels/docs/').set('Accept', 'text/html').expect(200);
        const [, notice = ''] = /<p class="verdict"[^>]*>(.*?)<\/p>/s.exec(page.text) ?? [];
        assert.equal(notice.replace(/<[^>]*>/g, ''), text);
        if ('successor' in dates) assert.match(notice, /<a href="\/v2\/hotels">/);
      }
    }
  });

  it('name the fields that only one version shows', async () => {
    const [v1, v2] = await Promise.all(
      ['/v1', '/v2'].map(async (prefix) => (await get(monolith, `${prefix}/openapi.json`)).body),
    );
    const fieldsOf = ({ components }: typeof v1) => Object.keys(components.schemas.Message.properties);
    const added = fieldsOf(v2).filter((name) => !fieldsOf(v1).includes(name));
    assert.deepEqual(added, ['created_at']);
    for (const { tags } of [v1, v2]) {
      const { description } = tags.find(({ name }: { name: string }) => name === 'Messages');
      for (const name of added) assert.ok(description.includes(`\`${name}\` is new in version 2`), name);
    }
  });

  it('share schemas between operations', async () => {
    const { body } = await get(monolith, '/v1/hotels/openapi.json');
    const hotel = ['Hotel', 'HotelBooking', 'HotelBookingPage', 'HotelBookingRequest', 'HotelPage'];
    const shared = ['BookingChange', 'Money', 'PageLinks', 'Problem', 'ProblemDetails'];
    assert.deepEqual(Object.keys(body.components.schemas).sort(), [...hotel, ...shared].sort());
    assert.equal(body.components.schemas.HotelBookingRequest.additionalProperties, false);
    assert.equal(body.components.schemas.HotelBooking.additionalProperties, undefined);
    assert.deepEqual(body.components.schemas.HotelBooking.properties.guests, { type: 'integer', format: 'int32' });
  });
});
