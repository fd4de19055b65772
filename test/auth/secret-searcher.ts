/** A child process that checks two passwords and reports whether it finds them, or their headers, in its heap. */
import { randomBytes } from 'node:crypto';
import { getHeapSnapshot } from 'node:v8';
// Not imported from '#auth', which would load the service as well. A small heap is searched faster.
import { createAuthenticator, formatBasic } from '../../src/auth/authenticator.ts';
import { createUsers, hashPassword } from '../../src/auth/users.ts';

/** Keeps secrets in buffers, whose bytes are not part of a heap snapshot, so that the search does not find itself. */
function secretBytes(): Buffer {
  return Buffer.from(randomBytes(12).toString('hex'));
}

async function findInHeap(needles: readonly Buffer[]): Promise<boolean[]> {
  const chunks: Buffer[] = [];
  for await (const chunk of getHeapSnapshot()) chunks.push(chunk);
  const heap = Buffer.concat(chunks);
  return needles.map((needle) => heap.includes(needle));
}

const [right, guess] = [secretBytes(), secretBytes()];
const passwordHash = await hashPassword(`${right}`, undefined, { ln: 1, r: 1, p: 1 });
const authenticator = createAuthenticator({ users: createUsers([{ name: 'demo', passwordHash }]) });
for (const password of [right, guess]) await authenticator.verdictOf(formatBasic('demo', `${password}`));
// V8 retains the last string that a regular expression matched, so match another one.
await authenticator.verdictOf(formatBasic('demo', 'guess'));
// The search must find this string, to prove that it works.
const retained = `${secretBytes()}`;
const needles = [right, guess].flatMap((password) => [password, Buffer.from(formatBasic('demo', `${password}`))]);
const found = await findInHeap([...needles, Buffer.from(retained)]);
const verdict = authenticator.verdictOf(formatBasic('demo', `${right}`));
process.stdout.write(JSON.stringify({ retained, found, isCached: !(verdict instanceof Promise) }));
