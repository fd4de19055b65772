/** Turns the steps of a recipe into test cases. */
import assert from 'node:assert/strict';
import type { Server } from '../support/programs/frontdesk-process.ts';
import { type CurlResponse, parseStory, type Story } from '../support/programs/shell-story.ts';

/** Adds a case for each step: all its responses have the step's status. */
export function stepCases({ steps }: Story, responses: () => readonly (readonly CurlResponse[])[]): void {
  for (const [index, { status, what }] of steps.entries()) {
    it(`${status}: ${what}`, () => {
      const answers = responses()[index] ?? [];
      assert.deepEqual([...new Set(answers.map((answer) => answer.status))], [status], JSON.stringify(answers));
    });
  }
}

/** Finds the password in the output of `frontdesk init`. */
export function passwordIn(printed: string): string {
  const [, password] = /has the password (\S+)/.exec(printed) ?? [];
  if (password === undefined) throw new Error(`init printed no password: ${printed}`);
  return password;
}

export function gatewayPort({ gatewayUrl }: Server): number {
  return Number(new URL(gatewayUrl).port);
}

/** Parses a story and replaces the page's placeholder with the password. */
export function withPassword(block: string, password: string): Story {
  const placeholder = 'the password that init printed';
  if (!block.includes(placeholder)) throw new Error(`the block has no placeholder for a password: ${block}`);
  return parseStory(block.replace(placeholder, password));
}
