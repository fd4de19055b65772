/** Recognising gRPC requests. */
import assert from 'node:assert/strict';
import { grpcKindOf } from '#http';

const kindOf = (type: string | undefined, method = 'POST') => grpcKindOf({ method, headers: { 'content-type': type } });

describe('a request', () => {
  for (const [kind, types] of Object.entries({
    grpc: ['application/grpc', 'application/grpc+proto', 'application/grpc+json', 'application/GRPC; charset=utf-8'],
    web: ['application/grpc-web', 'application/grpc-web+proto', 'application/grpc-web;v=1'],
    'web-text': ['application/grpc-web-text', 'application/grpc-web-text+proto'],
  }))
    it(`is a call of the kind ${kind} with ${types.join(', ')}`, () => {
      for (const type of types) assert.equal(kindOf(type), kind, type);
    });

  it('is no gRPC call with another type', () => {
    for (const type of [
      undefined,
      '',
      'application/json',
      'application/grpcx',
      'application/grpc-webx',
      'xapplication/grpc',
    ])
      assert.equal(kindOf(type), undefined, type);
  });

  it('is no gRPC call with another method than POST', () => {
    assert.equal(kindOf('application/grpc', 'GET'), undefined);
  });
});
