/** Resolves the names of pods to this machine, in a process that loads this file with `--import`. */
import dns from 'node:dns';
import { mock } from 'node:test';

const { lookup } = dns;
const { lookup: lookupAsync } = dns.promises;
const hostOf = (name: string) => (name.endsWith('.pod.example') ? '127.0.0.1' : name);

mock.method(dns, 'lookup', (name: string, options: never, done: never) => lookup(hostOf(name), options, done));
mock.method(dns.promises, 'lookup', (name: string, options: never) => lookupAsync(hostOf(name), options));
