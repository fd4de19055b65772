/** Whether an address is of this machine, which depends on its interfaces. */
import assert from 'node:assert/strict';
import dns, { type LookupAddress, type LookupOptions } from 'node:dns';
import os, { type NetworkInterfaceInfo } from 'node:os';
import { mock } from 'node:test';
import { createMachineGuard } from '#http';

/** A guard of a machine with these addresses, and how often it has read them. */
function setUp(...addresses: readonly string[]) {
  let nowMs = 0;
  let reads = 0;
  const current = [...addresses];
  mock.method(os, 'networkInterfaces', () => {
    reads += 1;
    return { lo: [], eth0: current.map((address) => ({ address }) as NetworkInterfaceInfo) };
  });
  const guard = createMachineGuard(() => nowMs);
  return {
    ...guard,
    reads: () => reads,
    pass(ms: number) {
      nowMs += ms;
    },
    change: (...to: readonly string[]) => void current.splice(0, current.length, ...to),
  };
}

afterEach(() => mock.restoreAll());

describe('the guard of this machine', () => {
  it('lets a connection lead to what is no address of an interface', () => {
    const { faultOf } = setUp('10.0.0.7', 'fd00::7');
    for (const host of ['10.0.0.8', '[fd00::8]', 'shop.example', 'localhost'])
      assert.equal(faultOf(host), undefined, host);
  });

  it('gives a connection all addresses of a name', async () => {
    const { lookup } = setUp('10.0.0.7');
    const all: LookupAddress[] = [
      { address: '10.0.0.6', family: 4 },
      { address: 'fd00::6', family: 6 },
    ];
    const lookUp = (_name: string, options: LookupOptions, done: (...found: unknown[]) => void) =>
      options.all ? done(null, all) : done(null, all[0]?.address, 4);
    mock.method(dns, 'lookup', lookUp);
    const found = (options: LookupOptions) =>
      new Promise((resolve) => lookup('shop.example', options, (...result) => resolve(result)));
    assert.deepEqual(await found({ all: true }), [null, all, undefined]);
    assert.deepEqual(await found({}), [null, '10.0.0.6', 4]);
  });

  it('keeps connections away from an address that an interface has, however it is written', () => {
    const { faultOf } = setUp('10.0.0.7', 'fd00:0:0::7');
    for (const host of ['10.0.0.7', '[fd00::7]', '[FD00:0:0:0:0:0:0:7]', '[::ffff:10.0.0.7]', '[::ffff:a00:7]'])
      assert.match(String(faultOf(host)), /^OwnMachine: .* is the machine of frontdesk/, host);
  });

  it('keeps connections away from all addresses that this machine has', () => {
    const { faultOf } = createMachineGuard(() => 0);
    const all = Object.values(os.networkInterfaces()).flatMap((addresses) => addresses ?? []);
    assert.ok(all.length > 0);
    for (const { address, family } of all)
      assert.notEqual(faultOf(family === 'IPv6' ? `[${address}]` : address), undefined, address);
  });

  it('reads the interfaces at most once in a second, and then knows their new addresses', () => {
    const { faultOf, reads, pass, change } = setUp('10.0.0.7');
    for (let time = 0; time < 3; time += 1) assert.notEqual(faultOf('10.0.0.7'), undefined);
    assert.equal(reads(), 1);
    change('10.0.0.8');
    pass(1000);
    assert.equal(faultOf('10.0.0.7'), undefined);
    assert.notEqual(faultOf('10.0.0.8'), undefined);
    assert.equal(reads(), 2);
  });

  it('lets no connection lead anywhere while the interfaces cannot be read, as in a sandbox without AF_NETLINK', async () => {
    const { faultOf, lookup } = setUp('10.0.0.7');
    mock.method(os, 'networkInterfaces', () => {
      throw new Error('error 97');
    });
    mock.method(dns, 'lookup', (_name: string, _options: LookupOptions, done: (...found: unknown[]) => void) =>
      done(null, '10.0.0.8', 4),
    );
    for (let time = 0; time < 2; time += 1) assert.match(String(faultOf('10.0.0.8')), /cannot be read: error 97/);
    const failure = await new Promise((resolve) => lookup('shop.example', {}, resolve));
    assert.match(String(failure), /^OwnMachine: .* cannot be read: error 97/);
    assert.equal(faultOf('shop.example'), undefined);
  });
});
