/** Reads the scripts and styles of HTML pages from disk. */
import { readFileSync } from 'node:fs';
import { digestTag } from '../precondition.ts';

const contentTypes = { css: 'text/css; charset=utf-8', js: 'text/javascript; charset=utf-8' } as const;

export type PageFileName = `${string}.${keyof typeof contentTypes}`;

export interface PageFile {
  readonly contentType: string;
  readonly body: string;
  /** A digest of the body. */
  readonly version: string;
}

/** `directory` is next to the calling file, both in the sources and in the build. */
export function readPageFiles(directory: URL, names: readonly PageFileName[]): ReadonlyMap<string, PageFile> {
  return new Map(names.map((name) => [name, readPageFile(new URL(name, directory))]));
}

/** `url` points to a local file with the extension `.css` or `.js`. */
export function readPageFile(url: URL): PageFile {
  const body = readFileSync(url, 'utf8');
  const contentType = contentTypes[url.pathname.endsWith('.css') ? 'css' : 'js'];
  return { contentType, body, version: digestTag(body).slice(1, -1) };
}
