/** "Book a room, rent a car": the README's own lines, run by a shell with curl, as somebody new to frontdesk would. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { type Server, startServer } from './support/programs/frontdesk-process.ts';
import { type Heard, hasCurl, parseStory, runStory, type Story } from './support/programs/shell-story.ts';
import { temporaryFiles } from './support/temporary-files.ts';

const story = readStory();

describe('the README: book a room, rent a car', function () {
  this.timeout(30_000);
  const writeFiles = temporaryFiles();
  let server: Server | undefined;
  /** What curl was answered, step by step. */
  let heard: readonly (readonly Heard[])[] = [];

  before(async function () {
    if (!hasCurl()) this.skip();
    server = await startServer([], { env: { LOG_LEVEL: 'error' } });
    const { port } = new URL(server.gatewayUrl);
    heard = await runStory(story, { cwd: await writeFiles(), ports: { 8080: Number(port) } });
  });

  after(() => server?.stop());

  for (const [index, { status, what }] of story.steps.entries()) {
    it(`${status}: ${what}`, () => {
      assert.equal(heard[index]?.at(-1)?.status, status, JSON.stringify(heard[index]));
    });
  }

  it('gets the same answer to the request that is sent again, and ends with what it says', async () => {
    const replayed = heard.flat().filter(({ head }) => /^idempotent-replayed: true/im.test(head));
    assert.equal(replayed.length, 1);
    const bookings = heard.flat().filter(({ status }) => status === 201);
    assert.deepEqual(replayed[0]?.body, bookings[0]?.body);
    const answers = await Promise.all(bookings.map(({ body }) => readAgain(JSON.parse(body).url)));
    assert.deepEqual(
      answers.map(({ status }) => status),
      ['cancelled', 'cancelled', 'confirmed'],
    );
    assert.deepEqual(answers[0]?.refund, answers[0]?.price);
  });
});

interface Booking {
  readonly status: string;
  readonly price: unknown;
  readonly refund?: unknown;
}

async function readAgain(url: string): Promise<Booking> {
  const answer = await fetch(url, { headers: { authorization: `Basic ${btoa('demo:demo')}` } });
  return (await answer.json()) as Booking;
}

function readStory(): Story {
  const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');
  const section = readme.split(/^#+ Book a room, rent a car$/m)[1]?.split(/^#+ /m)[0] ?? '';
  return parseStory(/^```sh\n(.*?)^```$/ms.exec(readme.slice(readme.indexOf(section)))?.[1] ?? '');
}
