/** Shows the state of the gateway: diagnostics, their events, the landing page, and problem pages. */
export type { Diagnostics } from './diagnostics.ts';
export { createDiagnosticsEvents } from './events.ts';
export {
  type Landing,
  type LandingRoute,
  type LandingStep,
  landingData,
  landingPage,
  signedOutPage,
} from './landing-page.ts';
export { mergeDiagnostics } from './merge.ts';
export { createDiagnostics } from './page.ts';
export { createProblemPages, problemPagesPath } from './problem-pages.ts';
export { kubernetesRow, threadsRow } from './rows.ts';
export { type DiagnosticsParts, type ReadDiagnostics, type RowFilter, readDiagnostics } from './snapshot.ts';
