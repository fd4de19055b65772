/** Writes the OpenAPI documents of a desk to files, for external programs. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import request from 'supertest';

export const documentPrefixes = ['/v1', '/v2', '/v1/hotels', '/v1/cars'] as const;

export interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, { parameters?: { readonly name: string }[] }>>>>;
}

export async function readDocument(gatewayUrl: string, prefix: string): Promise<Document> {
  const { body } = await request(gatewayUrl).get(`${prefix}/openapi.json`).auth('demo', 'demo').expect(200);
  return body;
}

/** Returns the file's path. */
export async function writeDocument(directory: string, prefix: string, document: Document): Promise<string> {
  const file = join(directory, `${prefix.slice(1).replaceAll('/', '-')}.json`);
  await writeFile(file, JSON.stringify(document));
  return file;
}
