/** What the gateway believes, for people and for whatever watches the process. */
export { createDiagnostics, type Endpoint } from './diag-app.ts';
export type { Diagnostics } from './diagnostics.ts';
export { createDiagnosticsEvents, type DiagnosticsEvents } from './events-app.ts';
export { createProblemPages, problemPagesPath } from './problem-pages.ts';
export type { DiagnosticsParts } from './snapshot.ts';
export { createNameClusters } from './snapshot-clusters.ts';
