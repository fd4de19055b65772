/** What the gateway believes, for people and for whatever watches the process. */
export { createDiagnostics, createProbes, type Endpoint } from './diag-app.ts';
export type { Diagnostics, DiagnosticsParts } from './snapshot.ts';
