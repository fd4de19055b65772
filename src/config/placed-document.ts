/** A YAML document as a plain value that still knows the line on which each of its parts stands. */
import type { ConfigurationError } from './configuration.ts';

/** Where a text stands: `lineOf` turns a line of the text into a line of the file. */
export interface Place {
  readonly file: string;
  readonly lineOf: (line: number) => number;
  /** The record that the text belongs to, for messages. */
  readonly record?: string | undefined;
}

/** One document of a stream. Paths that end nowhere count as the deepest part that is there. */
export interface PlacedDocument {
  readonly value: unknown;
  readonly file: string;
  readonly lineAt: (path: readonly PropertyKey[]) => number;
  /** The place of the text inside the string at `path`. */
  readonly placeWithin: (path: readonly PropertyKey[], record: string) => Place;
}

/** The documents of a stream that parse, and what is wrong with the others. */
export interface Documents {
  readonly documents: readonly PlacedDocument[];
  readonly errors: readonly ConfigurationError[];
}
