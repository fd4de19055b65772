/** The status codes of gRPC, and the ones that stand for HTTP statuses, refusals and resets. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { constants } from 'node:http2';
import { status as grpcJsStatus } from '@grpc/grpc-js';
import {
  grpcStatus,
  grpcStatusName,
  grpcStatusOfHttp,
  grpcStatusOfRefusal,
  grpcStatusOfReset,
  parseGrpcStatus,
  problems,
} from '#http';

describe('the status of a gRPC call', () => {
  it('has the numbers and names of other implementations', () => {
    for (const [name, code] of Object.entries(grpcStatus)) {
      assert.equal(grpcJsStatus[code], name);
      assert.equal(grpcStatusName(code), name);
    }
    assert.equal(Object.keys(grpcStatus).length, 17);
    assert.equal(grpcStatusName(17), undefined);
  });

  it('is parsed as a number, known or not', () => {
    for (const [text, expected] of [
      ['0', 0],
      ['14', 14],
      ['99', 99],
    ] as const)
      assert.equal(parseGrpcStatus(text), expected);
    for (const text of [undefined, '', '-1', '1.0', '0, 0', 'OK', '1000'])
      assert.equal(parseGrpcStatus(text), undefined);
  });
});

describe('the gRPC status of a response that is not gRPC', () => {
  const names = (statuses: readonly number[]) => statuses.map((status) => grpcStatusName(grpcStatusOfHttp(status)));

  it('is that of the table in the documents of gRPC', () => {
    assert.deepEqual(names([400, 401, 403, 404]), [
      'INTERNAL',
      'UNAUTHENTICATED',
      'PERMISSION_DENIED',
      'UNIMPLEMENTED',
    ]);
    assert.deepEqual(new Set(names([429, 502, 503, 504])), new Set(['UNAVAILABLE']));
    assert.deepEqual(new Set(names([200, 204, 302, 418, 500, 599])), new Set(['UNKNOWN']));
  });
});

describe('the gRPC status of a refusal', () => {
  const nameOf = (status: number) => grpcStatusName(grpcStatusOfRefusal(status));

  it('says what the HTTP status says', () => {
    const expected = {
      400: 'INVALID_ARGUMENT',
      401: 'UNAUTHENTICATED',
      403: 'PERMISSION_DENIED',
      404: 'UNIMPLEMENTED',
      409: 'ABORTED',
      412: 'FAILED_PRECONDITION',
      413: 'RESOURCE_EXHAUSTED',
      429: 'RESOURCE_EXHAUSTED',
      500: 'INTERNAL',
      502: 'UNAVAILABLE',
      503: 'UNAVAILABLE',
      504: 'DEADLINE_EXCEEDED',
    };
    for (const [status, name] of Object.entries(expected)) assert.equal(nameOf(Number(status)), name, status);
  });

  it('is exact for every problem but one that a gRPC call cannot have', () => {
    const unknown = Object.entries(problems).filter(([, { status }]) => nameOf(status) === 'UNKNOWN');
    assert.deepEqual(
      unknown.map(([slug]) => slug),
      ['not-acceptable'],
    );
  });

  it('is the one that the documentation lists', () => {
    const page = readFileSync('src/http/README.md', 'utf8');
    const rows = [...page.matchAll(/^\| ([\d, ]+) \| ([A-Z_]+) \|$/gm)];
    const listed = rows.flatMap(([, statuses = '', name]) =>
      statuses.split(', ').map((status) => [Number(status), name]),
    );
    const all = Array.from({ length: 300 }, (_, index) => [300 + index, nameOf(300 + index)] as const);
    const known = all.filter(([, name]) => name !== 'UNKNOWN');
    assert.deepEqual(Object.fromEntries(listed), Object.fromEntries(known));
  });

  it('is UNKNOWN for a status without a row, which another party has chosen', () => {
    for (const status of [402, 418, 451, 599]) assert.equal(nameOf(status), 'UNKNOWN');
  });
});

describe('the gRPC status of a stream that was reset', () => {
  it('is that of the table in the documents of gRPC', () => {
    const special: Readonly<Record<number, string>> = {
      [constants.NGHTTP2_REFUSED_STREAM]: 'UNAVAILABLE',
      [constants.NGHTTP2_CANCEL]: 'CANCELLED',
      [constants.NGHTTP2_ENHANCE_YOUR_CALM]: 'RESOURCE_EXHAUSTED',
      [constants.NGHTTP2_INADEQUATE_SECURITY]: 'PERMISSION_DENIED',
    };
    for (let code = 0; code <= constants.NGHTTP2_HTTP_1_1_REQUIRED; code += 1)
      assert.equal(grpcStatusName(grpcStatusOfReset(code)), special[code] ?? 'INTERNAL', String(code));
  });
});
