/** Faults of JSON text: found in exactly the texts that the parser rejects, or in which it drops a member. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { findJsonFaults } from '../../../src/http/json/json-faults.ts';

function parses(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

const piece = fc.constantFrom(
  '{',
  '}',
  '[',
  ']',
  ',',
  ':',
  '"',
  '"a"',
  '"\\u0061"',
  '\\',
  '\\u00',
  '\n',
  ' ',
  '\t',
  '\u00a0',
  '0',
  '1',
  '-',
  '.',
  'e+1',
  'true',
  'null',
  'nul',
  "'",
  '\u0001',
  '😀',
  '/',
);
const anything = fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join(''));
/** JSON text in which one piece is inserted, which often leaves it valid. */
const almostJson = fc.tuple(fc.json({ maxDepth: 4 }), piece, fc.nat()).map(([json, inserted, place]) => {
  const at = place % (json.length + 1);
  return json.slice(0, at) + inserted + json.slice(at);
});

describe('findJsonFaults', () => {
  it('finds a syntax error in exactly those texts that are not JSON', () => {
    const check = (text: string) => assert.equal(findJsonFaults(text).syntax === undefined, parses(text));
    fc.assert(fc.property(fc.oneof(anything, almostJson, fc.json()), check), { numRuns: 2000 });
  });

  it('places a syntax error within the text, or just behind it', () => {
    const check = (text: string) => {
      const { syntax } = findJsonFaults(text);
      if (syntax === undefined) return;
      const lines = text.split(/\r\n|\r|\n/);
      assert.ok(syntax.line <= lines.length);
      assert.ok(syntax.column <= [...(lines[syntax.line - 1] ?? '')].length + 1);
    };
    fc.assert(fc.property(fc.oneof(anything, almostJson), check), { numRuns: 1000 });
  });

  it('finds no repeated key in text that was printed from an object', () => {
    fc.assert(fc.property(fc.json(), (text) => assert.deepEqual(findJsonFaults(text).repeated, [])));
  });
});
