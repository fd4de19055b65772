/** Demo data: tables of rows of scalars, for an empty database. */
import * as z from 'zod';
import type { Configuration, ConfigurationError } from './configuration.ts';
import { label } from './fields.ts';
import { errorsOf, faultsOf } from './issues.ts';
import type { PlacedDocument } from './yaml-documents.ts';

type Cell = string | number | boolean | null;

const cell = z.custom<Cell>(isCell, 'must be a string, a number, true, false or null');
const schema = z.record(label(), z.array(z.record(label(), cell)));

const examples = {} as const;

/** The document of demo.yaml. Which tables and columns there are, storage knows. */
export function readDemo(document: PlacedDocument): {
  readonly demo: Configuration['demo'];
  readonly errors: readonly ConfigurationError[];
} {
  const read = schema.safeParse(document.value);
  if (read.success) return { demo: read.data, errors: [] };
  return {
    demo: {},
    errors: errorsOf(document, faultsOf(read.error, document.value, examples), undefined),
  };
}

function isCell(value: unknown): value is Cell {
  return value === null || ['string', 'number', 'boolean'].includes(typeof value);
}
