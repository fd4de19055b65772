/** What the OpenAPI documents of all travel services say. */

export const commonInfo = {
  license: { name: 'MIT', identifier: 'MIT' },
  exampleCredentials: 'demo:demo',
} as const;

export const demoNote = 'The examples work unchanged with the demo data.';
