/** The messages of Envoy's ext_authz, compared with protobufjs, which reads the definitions of Envoy. */
import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import protobuf from 'protobufjs';
import {
  type CheckAttributes,
  type DeniedAnswer,
  decodeCheck,
  decodeCheckAnswer,
  encodeCheck,
  encodeCheckAnswer,
  type HeaderEdit,
  type OkAnswer,
} from '#auth/ext-authz';

const root = protobuf.loadSync(fileURLToPath(new URL('../fixtures/ext-authz/external_auth.proto', import.meta.url)));
const requestType = root.lookupType('envoy.service.auth.v3.CheckRequest');
const responseType = root.lookupType('envoy.service.auth.v3.CheckResponse');

/** The message with the names of the definitions, as the library decodes it. */
const requestOf = (bytes: Uint8Array) => requestType.toObject(requestType.decode(bytes), { longs: Number });
const responseOf = (bytes: Uint8Array) => responseType.toObject(responseType.decode(bytes));
const encodeRequest = (message: object) => Buffer.from(requestType.encode(requestType.fromObject(message)).finish());
const encodeResponse = (message: object) => Buffer.from(responseType.encode(responseType.fromObject(message)).finish());

const attributes: CheckAttributes = {
  source: { address: '203.0.113.7', port: 4711, principal: 'CN=ann' },
  destination: { address: '10.0.0.1', port: 443, principal: undefined },
  id: 'id-1',
  method: 'POST',
  headers: [
    ':path',
    '/a?b=1',
    'x-name',
    'Z\u00c3\u00bcrich',
    'x-many',
    '1',
    'x-many',
    '2',
    'cookie',
    'a',
    'cookie',
    'b',
  ],
  path: '/a?b=1',
  host: 'front.example',
  scheme: 'https',
  size: 5,
  protocol: 'HTTP/1.1',
  body: Buffer.from('hello'),
  contextExtensions: [['tier', 'gold']],
  serverName: 'front.example',
};

const message = {
  attributes: {
    source: { address: { socketAddress: { address: '203.0.113.7', portValue: 4711 } }, principal: 'CN=ann' },
    destination: { address: { socketAddress: { address: '10.0.0.1', portValue: 443 } } },
    request: {
      http: {
        id: 'id-1',
        method: 'POST',
        headers: { ':path': '/a?b=1', 'x-name': 'Zürich', 'x-many': '1,2', cookie: 'a; b' },
        path: '/a?b=1',
        host: 'front.example',
        scheme: 'https',
        query: 'b=1',
        size: 5,
        protocol: 'HTTP/1.1',
        body: 'hello',
      },
    },
    contextExtensions: { tier: 'gold' },
    tlsSession: { sni: 'front.example' },
  },
};

const binary = fc.string({ unit: 'binary', maxLength: 20 });
const bytesText = fc.string({ unit: fc.integer({ min: 0, max: 127 }).map((code) => String.fromCharCode(code)) });

describe('a CheckRequest', () => {
  it('has the fields of the definition, and repeated headers joined', () => {
    assert.deepEqual(requestOf(encodeCheck(attributes)), message);
  });

  it('has a body that is not text in raw_body, and no size if it is unknown', () => {
    const { attributes: encoded } = requestOf(encodeCheck({ ...attributes, body: Buffer.of(0xff, 0), size: -1 }));
    const { body, rawBody, size } = encoded.request.http;
    assert.deepEqual([body, Buffer.from(rawBody), size], [undefined, Buffer.of(0xff, 0), undefined]);
  });

  it('is decoded as it was encoded, whatever it contains', () => {
    const peer = fc
      .tuple(fc.ipV4(), fc.nat({ max: 65_535 }))
      .map(([address, port]) => ({ address, port, principal: undefined }));
    const names = fc.stringMatching(/^[a-z-]{1,10}$/);
    fc.assert(
      fc.property(
        fc.record({
          source: fc.option(peer, { nil: undefined }),
          destination: fc.option(peer, { nil: undefined }),
          id: binary,
          method: bytesText,
          headers: fc.dictionary(names, bytesText).map((headers) => Object.entries(headers).flat()),
          path: bytesText,
          host: bytesText,
          scheme: bytesText,
          size: fc.maxSafeNat(),
          protocol: bytesText,
          body: fc.option(fc.uint8Array({ minLength: 1 }).map(Buffer.from), { nil: undefined }),
          contextExtensions: fc.uniqueArray(fc.tuple(binary, binary), { selector: ([name]) => name }),
          serverName: fc.option(binary, { nil: undefined }),
        }),
        (check) => {
          const id = check.id.toWellFormed();
          assert.deepEqual(decodeCheck(encodeCheck(check)), { ...check, id });
        },
      ),
    );
  });

  it('of another encoder is decoded, with names of headers in lower case and unknown fields ignored', () => {
    const peer = { address: { socketAddress: { address: '::1', portValue: 1 } }, labels: { a: 'b' }, certificate: 'c' };
    const http = { method: 'GET', path: '/', headers: { 'X-Name': 'Zürich' }, size: -1, fragment: 'f' };
    const encoded = encodeRequest({
      attributes: { source: peer, request: { time: { seconds: 5 }, http }, metadataContext: { fields: {} } },
    });
    const { source, headers, size, destination } = decodeCheck(encoded);
    assert.deepEqual(source, { address: '::1', port: 1, principal: undefined });
    assert.deepEqual([headers, size, destination], [['x-name', 'Z\u00c3\u00bcrich'], -1, undefined]);
  });

  it('with raw headers is decoded, each with its bytes', () => {
    const headers = [
      { key: 'a', rawValue: Buffer.of(0xe4) },
      { key: 'a', rawValue: Buffer.from('2') },
    ];
    const encoded = encodeRequest({ attributes: { request: { http: { headerMap: { headers } } } } });
    assert.deepEqual(decodeCheck(encoded).headers, ['a', '\u00e4', 'a', '2']);
  });

  it('of a client on a Unix socket has no source', () => {
    const source = { address: { pipe: { path: '/run/envoy.sock' } } };
    assert.equal(decodeCheck(encodeRequest({ attributes: { source, request: { http: {} } } })).source, undefined);
  });

  const hex = (text: string) => Buffer.from(text, 'hex');
  const invalid: Readonly<Record<string, Buffer>> = {
    'is empty': hex(''),
    'has no request': encodeRequest({ attributes: { source: {} } }),
    'has no HTTP request': encodeRequest({ attributes: { request: { time: { seconds: 5 } } } }),
    'is truncated': encodeRequest(message).subarray(0, -1),
    'has text that is not UTF-8': hex('0a072205120312' + '01ff'),
  };
  for (const [what, bytes] of Object.entries(invalid))
    it(`is rejected if it ${what}`, () => assert.throws(() => decodeCheck(bytes), Error));

  it('is rejected if it has too many fields, before they are decoded', () => {
    const many = Object.fromEntries(Array.from({ length: 1500 }, (_, index) => [`x-${index}`, '']));
    const encoded = encodeRequest({ attributes: { request: { http: { headers: many } } } });
    assert.throws(() => decodeCheck(encoded), /^RangeError: the message has more than 4096 fields$/);
    const empty = Buffer.concat([encoded.subarray(0, 0), hex('0a00'.repeat(100_000))]);
    assert.throws(() => decodeCheck(empty), RangeError);
  });

  it('that is noise is decoded or rejected with an Error', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (noise) => {
        for (const decode of [decodeCheck, decodeCheckAnswer]) {
          try {
            decode(Buffer.concat([hex('0a'), Buffer.of(noise.length), noise]));
          } catch (error) {
            assert.ok(error instanceof Error);
          }
        }
      }),
    );
  });
});

describe('a CheckResponse', () => {
  const edit = (name: string, value: string, action: HeaderEdit['action'] = 'set') => ({ name, value, action });
  const ok: OkAnswer = {
    kind: 'ok',
    headers: [edit('x-user', 'Z\u00c3\u00bcrich'), edit('x-more', '1', 'append')],
    headersToRemove: ['x-other'],
    responseHeaders: [edit('x-a', '1', 'set-if-absent'), edit('x-b', '2', 'set-if-present')],
    editsQuery: false,
  };
  const denied: DeniedAnswer = {
    kind: 'denied',
    status: 401,
    headers: [edit('www-authenticate', 'Basic')],
    body: Buffer.from('no'),
  };

  it('that allows a request has the fields of the definition', () => {
    const header = (key: string, value: string) => ({ key, value });
    assert.deepEqual(responseOf(encodeCheckAnswer(ok)), {
      status: {},
      okResponse: {
        headers: [
          { header: header('x-user', 'Zürich'), appendAction: 2 },
          { header: header('x-more', '1'), append: { value: true } },
        ],
        headersToRemove: ['x-other'],
        responseHeadersToAdd: [
          { header: header('x-a', '1'), appendAction: 1 },
          { header: header('x-b', '2'), appendAction: 3 },
        ],
      },
    });
  });

  it('that denies a request has the fields of the definition', () => {
    assert.deepEqual(responseOf(encodeCheckAnswer(denied, 16)), {
      status: { code: 16 },
      deniedResponse: {
        status: { code: 401 },
        headers: [{ header: { key: 'www-authenticate', value: 'Basic' }, appendAction: 2 }],
        body: 'no',
      },
    });
  });

  it('is decoded as it was encoded', () => {
    assert.deepEqual(decodeCheckAnswer(encodeCheckAnswer(ok)), ok);
    assert.deepEqual(decodeCheckAnswer(encodeCheckAnswer(denied, 16)), denied);
  });

  const decoded = (response: object) => decodeCheckAnswer(encodeResponse(response));
  const bare: OkAnswer = { kind: 'ok', headers: [], headersToRemove: [], responseHeaders: [], editsQuery: false };

  it('allows a request with the status OK, with or without an OkHttpResponse, and with one alone', () => {
    for (const response of [{ status: {} }, { status: { code: 0 }, okResponse: {} }, { okResponse: {} }])
      assert.deepEqual(decoded(response), bare);
  });

  it('denies a request with any other status, with 403 by default', () => {
    const plain = { kind: 'denied', status: 403, headers: [], body: new Uint8Array() };
    for (const response of [{ status: { code: 7 } }, { status: { code: 7 }, okResponse: {} }])
      assert.deepEqual(decoded(response), plain);
    assert.deepEqual(decoded({ status: { code: -1 }, deniedResponse: { status: { code: 404 } } }), {
      ...plain,
      status: 404,
    });
  });

  it('is an error with an error_response, whatever its status', () => {
    assert.equal(decoded({ status: {}, errorResponse: {} }).kind, 'error');
  });

  it('is rejected if it says nothing, or denies a request with the status OK', () => {
    for (const response of [{}, { status: {}, deniedResponse: {} }, { dynamicMetadata: { fields: {} } }])
      assert.throws(() => decoded(response), Error);
  });

  it('replaces a header unless it says otherwise', () => {
    const actions = [
      {},
      { appendAction: 2 },
      { append: { value: false } },
      { append: { value: false }, appendAction: 1 },
      { append: { value: true } },
      { appendAction: 1 },
      { appendAction: 3 },
      { appendAction: 99 },
    ].map((option) => {
      const answer = decoded({ okResponse: { headers: [{ header: { key: 'X-A', value: 'b' }, ...option }] } });
      assert.ok(answer.kind === 'ok' && answer.headers[0]?.name === 'x-a');
      return answer.headers[0].action;
    });
    const set = 'set';
    assert.deepEqual(actions, [set, set, set, set, 'append', 'set-if-absent', 'set-if-present', set]);
  });

  it('says whether it changes the query', () => {
    const of = (okResponse: object) => decoded({ okResponse });
    for (const response of [{ queryParametersToSet: [{ key: 'a' }] }, { queryParametersToRemove: ['a'] }])
      assert.deepEqual(of(response), { ...bare, editsQuery: true });
  });

  it('is rejected if it has too many fields', () => {
    const headersToRemove = Array.from({ length: 5000 }, () => 'a');
    assert.throws(() => decoded({ okResponse: { headersToRemove } }), RangeError);
  });
});
