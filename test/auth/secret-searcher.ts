/** A process that checks two passwords, and reports which of them and of their headers its heap holds, and a text held on purpose. */
import { randomBytes } from 'node:crypto';
import { getHeapSnapshot } from 'node:v8';
// Not from '#auth', which loads the service as well: a small heap is searched in a moment.
import { createAuthenticator } from '../../src/auth/authenticator.ts';
import { formatBasic } from '../../src/auth/basic.ts';
import { hashPassword } from '../../src/auth/password-hash.ts';
import { createUsers } from '../../src/auth/users.ts';

/** Secrets live in buffers, whose bytes a heap snapshot leaves out, so that the search itself holds no text of them. */
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
for (const password of [right, guess]) await authenticator.authenticate(formatBasic('demo', `${password}`));
// The engine keeps the last text that a regular expression matched, and only that one.
await authenticator.authenticate(formatBasic('demo', 'guess'));
const held = `${secretBytes()}`;
const needles = [right, guess].flatMap((password) => [password, Buffer.from(formatBasic('demo', `${password}`))]);
const found = await findInHeap([...needles, Buffer.from(held)]);
const verdict = authenticator.authenticate(formatBasic('demo', `${right}`));
process.stdout.write(JSON.stringify({ held, found, isRemembered: !(verdict instanceof Promise) }));
