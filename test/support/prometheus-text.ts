/** A third-party parser of Prometheus' text format. */
import { createRequire } from 'node:module';

/** The members that the tests use. */
interface ParsedFamily {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  readonly metrics: readonly ParsedSample[];
}

interface ParsedSample {
  readonly labels?: Readonly<Record<string, string>>;
  readonly value: string;
}

const require = createRequire(import.meta.url);

// The package has no type declarations, so TypeScript rejects an import of it.
export const parsePrometheusText: (text: string) => readonly ParsedFamily[] = require('parse-prometheus-text-format');
