import assert from 'node:assert/strict';
import * as http from '#http';

describe('the http module', () => {
  it('gives out only what is there', () => {
    for (const [name, value] of Object.entries(http)) assert.notEqual(value, undefined, name);
  });
});
