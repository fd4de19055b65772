/** The translation between gRPC-Web and gRPC. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import {
  createWebTextReader,
  encodeWebText,
  formatWebTrailers,
  grpcTypeFromWeb,
  grpcWebCallOf,
  webTypeFromGrpc,
} from '#http';
import { grpcFramesIn } from '../../support/wire/grpc-frames.ts';

const anyBytes = fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes));

describe('a call of gRPC-Web', () => {
  const callOf = (type: string, accept?: string) =>
    grpcWebCallOf({ method: 'POST', headers: { 'content-type': type, ...(accept && { accept }) } });

  it('gets its response in its own form, unless it accepts the other one', () => {
    const [web, text] = ['application/grpc-web+proto', 'application/grpc-web-text'];
    assert.deepEqual(callOf(web), { isRequestText: false, isResponseText: false });
    assert.deepEqual(callOf(text), { isRequestText: true, isResponseText: true });
    assert.deepEqual(callOf(web, 'application/grpc-web-text'), { isRequestText: false, isResponseText: true });
    assert.deepEqual(callOf(text, 'application/grpc-web+proto'), { isRequestText: true, isResponseText: false });
    assert.deepEqual(callOf(text, '*/*'), { isRequestText: true, isResponseText: true });
    for (const other of ['application/grpc', 'application/json']) assert.equal(callOf(other), undefined);
  });

  it('has the content type of gRPC for the service, with the same format of messages, and back', () => {
    assert.equal(grpcTypeFromWeb('application/grpc-web'), 'application/grpc');
    assert.equal(grpcTypeFromWeb('application/grpc-web-text+proto'), 'application/grpc+proto');
    const [binary, text] = [false, true].map((isResponseText) => ({ isRequestText: false, isResponseText }));
    assert.ok(binary && text);
    assert.equal(webTypeFromGrpc('application/grpc', binary), 'application/grpc-web');
    assert.equal(webTypeFromGrpc('application/grpc+json', text), 'application/grpc-web-text+json');
    assert.equal(webTypeFromGrpc('text/html', text), 'text/html');
  });
});

describe('the trailers of gRPC-Web', () => {
  it('are a frame with lines of lower-case names', () => {
    const trailers = formatWebTrailers([
      ['Grpc-Status', '5'],
      ['grpc-message', 'no cart'],
      ['cart-bin', 'AAE'],
    ]);
    const [frame, ...more] = grpcFramesIn(trailers);
    assert.deepEqual([frame?.flags, more], [128, []]);
    assert.equal(frame?.message.toString(), 'grpc-status: 5\r\ngrpc-message: no cart\r\ncart-bin: AAE\r\n');
  });

  it('keep the bytes of a value', () => {
    assert.ok(
      formatWebTrailers([['a', '\xc3\xbc']])
        .toString()
        .endsWith('a: ü\r\n'),
    );
  });
});

describe('the text of gRPC-Web', () => {
  it('is decoded however it is split, with padding wherever the client has flushed it', () => {
    fc.assert(
      fc.property(fc.array(anyBytes, { maxLength: 6 }), fc.array(fc.nat(9), { minLength: 1 }), (parts, sizes) => {
        const text = Buffer.concat(parts.map(encodeWebText));
        const reader = createWebTextReader();
        const decoded: Buffer[] = [];
        for (let [at, turn] = [0, 0]; at < text.length; turn += 1) {
          const size = 1 + (sizes[turn % sizes.length] ?? 0);
          decoded.push(reader.read(text.subarray(at, at + size)) ?? assert.fail('refused'));
          at += size;
        }
        assert.deepEqual(Buffer.concat(decoded), Buffer.concat(parts));
        assert.ok(reader.isComplete());
      }),
    );
  });

  it('is decoded as soon as four characters have arrived', () => {
    const reader = createWebTextReader();
    assert.equal(reader.read(Buffer.from('YWJjZA'))?.toString(), 'abc');
    assert.ok(!reader.isComplete());
    assert.equal(reader.read(Buffer.from('=='))?.toString(), 'd');
    assert.ok(reader.isComplete());
  });

  for (const text of ['YWJ*', 'YWJ-', 'YW J', 'Y===', '====', 'YW=J', 'YWJjY===', 'YW\nJ', 'YWJ\xff'])
    it(`is refused if it is ${JSON.stringify(text)}`, () => {
      assert.equal(createWebTextReader().read(Buffer.from(text, 'latin1')), undefined);
    });

  it('is refused for any other characters', () => {
    fc.assert(
      fc.property(anyBytes, (bytes) => {
        const text = bytes.toString('latin1').slice(0, bytes.length - (bytes.length % 4));
        const decoded = createWebTextReader().read(Buffer.from(text, 'latin1'));
        assert.ok(decoded === undefined || /^[A-Za-z0-9+/=]*$/.test(text));
      }),
    );
  });
});
