/** A parser of Prometheus's text format that is not ours. */
import { createRequire } from 'node:module';

/** As far as it is used. */
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

// The package declares no types, and TypeScript takes no import of it without.
export const parsePrometheusText: (text: string) => readonly ParsedFamily[] = require('parse-prometheus-text-format');
